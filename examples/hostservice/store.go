package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// A store holds values by their names. Its clients are programs in a sandbox, which nobody trusts,
// so all that they can use up is bounded.
type store struct {
	mu     sync.Mutex
	values map[string]string
}

const (
	maxValue  = 64 << 10 // bytes of a value
	maxValues = 1000     // values of the store
	maxConns  = 32       // connections at a time
)

func (s *store) get(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[name]
}

// ServeHTTP implements http.Handler: GET returns a value, and PUT stores one.
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
	if _, ok := s.values[name]; !ok && len(s.values) >= maxValues {
		http.Error(w, "the store is full", http.StatusInsufficientStorage)
		return
	}
	s.values[name] = string(value)
	io.WriteString(w, "stored")
}

// limit returns a listener that has at most n connections open at a time, because each holds
// memory. Further connections wait in the box.
func limit(l net.Listener, n int) net.Listener {
	return &limited{Listener: l, open: make(chan struct{}, n), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	open   chan struct{} // holds a token for each open connection
	closed chan struct{}
	once   sync.Once
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &limitedConn{Conn: conn, release: sync.OnceFunc(func() { <-l.open })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	release func()
}

func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
