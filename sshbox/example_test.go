package sshbox_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/sshbox"
)

func ExampleNew() {
	ctx := context.Background()
	box, err := sshbox.New(ctx, sshbox.Config{
		Image:   "debian:stable-slim",
		Network: "none",
		Memory:  1 << 30,
		Env:     []string{"CI=1"},
		Mounts:  []sshbox.Mount{{Source: "/srv/project", Target: "/project", ReadOnly: true}},
		Progress: func(p sshbox.PullProgress) {
			fmt.Fprintf(os.Stderr, "%s %s %d/%d\n", p.Layer, p.Status, p.Done, p.Total)
		},
	})
	if err != nil {
		log.Fatal(err) // names what is missing, for example the engine or the image
	}
	defer box.Close()

	box.Execute(ctx, "cd /project && export GREETING=hello")
	result, err := box.Execute(ctx, `echo "$GREETING from $PWD"`)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(result.Output) // hello from /project
}

func ExampleDial() {
	ctx := context.Background()
	box, err := sshbox.Dial(ctx, sshbox.DialConfig{Address: "build-1.example.com:2222", User: "ci"})
	if err != nil {
		log.Fatal(err) // names address, user and reason
	}
	defer box.Close()
	result, err := box.Execute(ctx, "uptime")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(result.Output)
}

// This example uses the engine of another machine, which it reaches through an SSHBox.
func ExampleConfig_remoteEngine() {
	ctx := context.Background()
	machine, err := sshbox.Dial(ctx, sshbox.DialConfig{Address: "big-machine.example.com"})
	if err != nil {
		log.Fatal(err)
	}
	defer machine.Close()
	docker, err := client.New(client.WithDialContext(
		func(ctx context.Context, _, _ string) (net.Conn, error) {
			return machine.Dial(ctx, "unix", "/var/run/docker.sock")
		}))
	if err != nil {
		log.Fatal(err)
	}
	defer docker.Close()
	box, err := sshbox.New(ctx, sshbox.Config{Image: "my-image", Docker: docker})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
}
