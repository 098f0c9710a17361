package service_test

import (
	"context"
	"fmt"
	"os"

	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/sshbox"
)

// This backend gives each conversation a box of its own.
func Example() {
	specs, err := service.NewSpecs(&service.Spec{
		ID:        "python",
		Config:    sshbox.Config{Image: "python:3-slim", Memory: 1 << 30},
		Lifecycle: service.DefaultLifecycle,
		Warm:      3,
	})
	if err != nil {
		panic(err)
	}
	// The file has at least 32 random bytes, which stay the same when the backend is restarted.
	secret, err := os.ReadFile("secret")
	if err != nil {
		panic(err)
	}
	s, err := service.New(service.Config{Specs: specs, Secret: secret})
	if err != nil {
		panic(err)
	}
	defer s.Close()

	answer := func(ctx context.Context, conversation, user, command string) (string, error) {
		if _, err := s.Start(ctx, service.StartOptions{ID: conversation, Owner: user}); err != nil {
			return "", err
		}
		box, err := s.Open(ctx, conversation)
		if err != nil {
			return "", err
		}
		result, err := box.Execute(ctx, command)
		if err != nil {
			return "", err
		}
		return result.Output, nil
	}
	fmt.Println(answer(context.Background(), "conversation-1", "alice", "python3 --version"))
}
