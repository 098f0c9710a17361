package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// A store has values by names. Its caller is a program in a sandbox, which nobody trusts: what it
// may take up here is bounded.
type store struct {
	mu     sync.Mutex
	values map[string]string
}

// The bounds of a store.
const (
	maxValue    = 64 << 10
	maxValues   = 1000
	connections = 32
)

func (s *store) get(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[name]
}

// ServeHTTP gets and puts values.
func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[1:]
	if r.Method != http.MethodPut {
		s.mu.Lock()
		value, ok := s.values[name]
		s.mu.Unlock()
		if !ok {
			http.Error(w, "there is no "+name, http.StatusNotFound)
			return
		}
		io.WriteString(w, value)
		return
	}
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxValue))
	if err != nil {
		http.Error(w, fmt.Sprintf("a value has at most %d bytes", maxValue),
			http.StatusRequestEntityTooLarge)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.values[name]; !there && len(s.values) >= maxValues {
		http.Error(w, "the store is full", http.StatusInsufficientStorage)
		return
	}
	s.values[name] = string(value)
	io.WriteString(w, "stored")
}

// atMost accepts no more than n connections at once: each may hold memory here. The others wait at
// the box's end.
func atMost(l net.Listener, n int) net.Listener {
	return &bounded{Listener: l, free: make(chan struct{}, n), closed: make(chan struct{})}
}

type bounded struct {
	net.Listener
	free   chan struct{} // has something for each connection that is open
	closed chan struct{}
	once   sync.Once
}

func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &counted{Conn: conn, ended: sync.OnceFunc(func() { <-b.free })}, nil
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

type counted struct {
	net.Conn
	ended func()
}

func (c *counted) Close() error {
	defer c.ended()
	return c.Conn.Close()
}
