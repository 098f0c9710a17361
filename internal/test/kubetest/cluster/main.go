//go:build linux

// Cluster runs a real Kubernetes cluster on this machine: etcd, the API server, the controller
// manager, the scheduler, and one to nine nodes, each a kubelet and a containerd in namespaces of
// its own.
//
//	go run ./internal/test/kubetest/cluster [-nodes N] [-grace D] [-image NAME]...
//
// It prints "KUBECONFIG=…" when the nodes are ready, and takes orders from its standard input, a
// line each, until that ends:
//
//	kill NAME     ends a part at once: apiserver, controller-manager, scheduler, etcd, or a node
//	              (node1 …) with all its containers
//	start NAME    starts it again, with the disk that it had
//	pause NAME    the part stops where it is; a node loses its network
//	resume NAME   and goes on
//
// Each is answered by "ok" or "error: …". Where the machine cannot have a cluster, it prints
// "lacks: …" and ends with status 3.
//
// Whatever ends this program, kill -9 included, ends all of the cluster: pid 1 of its namespaces
// ends when its standard input does. It has no network but its own; its API server is reached at a
// port of 127.0.0.1. The machine keeps no mount, interface, sysctl or process of it. Its files and
// its groups of processes in /sys/fs/cgroup go too, after a kill -9 when the next cluster starts.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var err error
	switch first(os.Args[1:]) {
	case roleUnpack:
		err = unpack(os.Args[2])
	case rolePlane:
		err = plane(os.Args[2])
	case roleNode:
		err = node(os.Args[2], os.Args[3])
	default:
		err = outside()
	}
	var lacks lacksError
	switch {
	case errors.As(err, &lacks):
		fmt.Println("lacks:", err)
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// lacksError is what this machine has not.
type lacksError string

func (e lacksError) Error() string { return string(e) }

// options are what the cluster is to be like.
type options struct {
	Nodes  int
	Grace  time.Duration
	images []string
}

func outside() error {
	o := options{images: []string{"sandshell-test", "sandshell-busybox", "sandshell-shell"}}
	flag.IntVar(&o.Nodes, "nodes", 1, "how many `nodes`, 1 to 9")
	flag.DurationVar(&o.Grace, "grace", 50*time.Second,
		"how long a node may be silent until the cluster takes it for lost; its pods are given "+
			"up after half of that more")
	flag.Func("image", "an image of the local Docker engine, beside those of the tests; repeatable",
		func(name string) error {
			o.images = append(o.images, name)
			return nil
		})
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %s; see -help", flag.Arg(0))
	}
	if o.Nodes < 1 || o.Nodes > 9 {
		return fmt.Errorf("-nodes %d: there may be 1 to 9", o.Nodes)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	lines := make(chan string)
	go func() { // ends with this program: nothing interrupts a read of a terminal
		defer close(lines)
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
			lines <- input.Text()
		}
	}()
	c, err := up(o)
	if err == nil {
		err = c.serve(lines, signals)
	}
	if c != nil {
		err = errors.Join(err, c.down())
	}
	return err
}
