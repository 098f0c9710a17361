package egress_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sandshell/sandshell/egress"
	"github.com/sandshell/sandshell/sshbox"
)

// A program installs a package in a box that reaches nothing else.
func Example() {
	ctx := context.Background()
	gate, err := egress.New(egress.Config{Allow: egress.Rules("packages.example.com")})
	if err != nil {
		log.Fatal(err)
	}
	defer gate.Close()
	box, err := sshbox.New(ctx, sshbox.Config{Network: "none"})
	if err != nil {
		log.Fatal(err)
	}
	defer box.Close()
	exit, err := gate.Attach(ctx, box)
	if err != nil {
		log.Fatal(err)
	}
	res, err := box.Execute(ctx, "curl -s https://packages.example.com https://evil.example.com")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Output)
	for _, e := range exit.Denied() {
		fmt.Println(e.Host, e.Denied)
	}
}
