package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/e2b"
)

// debugPorts are what E2B's SDKs ask of localhost with E2B_DEBUG: the data plane, and the code
// interpreter.
var debugPorts = []string{"localhost:49983", "localhost:49999"}

// listenE2B listens for E2B's SDKs: at the address, and if debug is set at the ports of debugPorts.
func listenE2B(address string, debug bool) (all []net.Listener, err error) {
	l, err := listenTo("-e2b", address)
	if err != nil {
		return nil, err
	}
	all = append(all, l)
	if !debug {
		return all, nil
	}
	for _, address := range debugPorts {
		l, err := listenTo("-debug", address)
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

func closeAll(all []net.Listener) {
	for _, l := range all {
		l.Close()
	}
}

// listenTo listens at the address that a flag gives.
func listenTo(flag, address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, usage("serve: %s %q: give a host and a port, as 127.0.0.1:3000", flag, address)
	}
	l, err := net.Listen("tcp", address)
	var wrong *net.AddrError
	var unknown *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && flag == "-debug":
		return nil, fmt.Errorf("serve: -debug: another program listens at %s, where E2B's SDKs "+
			"look for the box: end it, or leave -debug out", address)
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("serve: %s %s: another program listens there: give another port, "+
			"or 0 for one that is free", flag, address)
	case errors.As(err, &wrong) || errors.As(err, &unknown):
		return nil, usage("serve: %s %q: %v: give a host of this machine and a port, as "+
			"127.0.0.1:3000", flag, address, err)
	case err != nil:
		return nil, fmt.Errorf("serve: %s %s: %w: give an address of this machine and a port that "+
			"you may use", flag, address, err)
	}
	return l, nil
}

// serveE2B serves E2B's API until ctx ends, and prints the variables that E2B's SDKs need. The API
// key is made from the clients' token. The first listener is for the API, and others for the box
// of -debug.
func serveE2B(ctx context.Context, all []net.Listener, s *service.Service, t token) error {
	key := e2bKey(t)
	handler := e2b.Handler(e2b.Config{Service: s, Logger: warnings(),
		Keys: func(given string) (owner string, ok bool) {
			return "", subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 1
		}})
	address := "http://" + all[0].Addr().String()
	if len(all) == 1 {
		fmt.Printf("export E2B_API_KEY=%s\nexport E2B_API_URL=%s\nexport E2B_SANDBOX_URL=%s\n",
			key, address, address)
		return serveListener(ctx, all[0], handler)
	}
	remove, err := startDebug(ctx, s)
	if err != nil {
		return fmt.Errorf("start the box of -debug: %w", err)
	}
	fmt.Printf("export E2B_DEBUG=true\nunset E2B_SANDBOX_URL\nexport E2B_API_KEY=%s\n"+
		"export E2B_API_URL=%s\n", key, address)
	serving, end := context.WithCancel(ctx)
	defer end()
	errs := make([]error, len(all))
	var each sync.WaitGroup
	for i, l := range all {
		its := http.Handler(handler)
		if i > 0 {
			its = e2b.Debug(handler, e2b.DebugID)
		}
		each.Go(func() {
			defer end()
			errs[i] = serveListener(serving, l, its)
		})
	}
	each.Wait()
	return errors.Join(errors.Join(errs...), remove())
}

// removeLimit bounds the removal of the box of -debug.
const removeLimit = time.Minute

// startDebug starts the box of -debug, in place of one that a killed sandshell has left.
func startDebug(ctx context.Context, s *service.Service) (remove func() error, err error) {
	err = s.Delete(ctx, e2b.DebugID)
	if err != nil && !errors.Is(err, service.ErrNotFound) {
		return nil, err
	}
	o := service.StartOptions{ID: e2b.DebugID, Spec: "base"}
	_, err = s.Start(ctx, o)
	if errors.Is(err, service.ErrNotFound) {
		o.Spec = ""
		_, err = s.Start(ctx, o)
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
		defer cancel()
		if err := s.Delete(ctx, e2b.DebugID); !errors.Is(err, service.ErrNotFound) {
			return err
		}
		return nil
	}, err
}

// e2bKey returns the key for a token. E2B's SDKs accept only keys of this form: e2b_ and 40
// hexadecimal digits.
func e2bKey(t token) string {
	sum := sha256.Sum256([]byte("sandshell e2b\x00" + t.value))
	return "e2b_" + hex.EncodeToString(sum[:20])
}
