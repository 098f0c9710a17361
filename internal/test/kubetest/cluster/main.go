//go:build linux

// Cluster runs a real Kubernetes cluster on this machine: etcd, the API server, the controller
// manager, the scheduler, and one to nine nodes, each a kubelet and a containerd in namespaces of
// its own.
//
//	go run ./internal/test/kubetest/cluster [-nodes N] [-grace D] [-image NAME]...
//
// It prints "KUBECONFIG=…" when the nodes are ready. Then it reads orders from its standard input,
// one on each line, until the input ends:
//
//	kill NAME     end a part at once: apiserver, controller-manager, scheduler, etcd, or a node
//	              (node1 …) with all its containers
//	start NAME    start the part again, with its disk
//	pause NAME    freeze the part; a node loses its network
//	resume NAME   let the part go on
//
// It answers each order with "ok" or "error: …". If the machine cannot run a cluster, it prints
// "lacks: …" and ends with status 3.
//
// The cluster ends when this program ends, even by kill -9, because pid 1 of the cluster's
// namespaces ends with its standard input. The cluster has only a network of its own. Its API
// server listens on a port of 127.0.0.1. No mount, interface, sysctl or process is left on the
// machine. The files and the control groups are removed too; after a kill -9, the next cluster
// removes them.
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

// A lacksError says what this machine lacks for a cluster.
type lacksError string

func (e lacksError) Error() string { return string(e) }

// options describe the cluster.
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
		return fmt.Errorf("-nodes %d: give 1 to 9", o.Nodes)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	lines := make(chan string)
	go func() { // ends only with this program, because nothing interrupts a read of a terminal
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
