// Server is the HTTP server that the tests of the proxy run in a box.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

func main() {
	next := make(chan struct{})
	http.HandleFunc("/request", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"header": r.Header, "host": r.Host,
			"uri": r.RequestURI})
	})
	// big begins to answer before it has read the request.
	http.HandleFunc("POST /big", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		w.Header().Set("Content-Length", strconv.Itoa(n))
		w.Write(make([]byte, n/2))
		io.Copy(io.Discard, r.Body)
		w.Write(make([]byte, n-n/2))
	})
	http.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).EnableFullDuplex()
		http.NewResponseController(w).Flush()
		buf := make([]byte, 1<<10)
		for {
			n, err := r.Body.Read(buf)
			w.Write(buf[:n])
			http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	})
	http.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := 0; ; i++ {
			fmt.Fprintf(w, "data: %d\n\n", i)
			http.NewResponseController(w).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})
	http.HandleFunc("POST /next", func(w http.ResponseWriter, r *http.Request) {
		next <- struct{}{}
	})
	// ws refuses pages of other hosts.
	http.HandleFunc("GET /ws", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if c.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
	http.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Set-Cookie", "user=zoë; Path=/app; Domain=localhost; HttpOnly")
		w.Header().Add("Set-Cookie", "__Host-session_api_key=stolen; Path=/")
		w.Header().Add("Set-Cookie", "plain=1")
		http.Redirect(w, r, "/app", http.StatusFound)
	})
	http.HandleFunc("GET /cut", func(w http.ResponseWriter, r *http.Request) {
		c, _, _ := http.NewResponseController(w).Hijack()
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		c.Close()
	})
	server := &http.Server{Addr: os.Args[1], ReadHeaderTimeout: time.Minute}
	fmt.Println(server.ListenAndServe())
}
