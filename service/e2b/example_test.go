package e2b_test

import (
	"crypto/subtle"
	"net/http"
	"os"

	"github.com/sandshell/sandshell/service"
	"github.com/sandshell/sandshell/service/e2b"
	"github.com/sandshell/sandshell/sshbox"
)

// E2B's API on port 3000, for one key. A client sets E2B_API_KEY to it, and both E2B_API_URL and
// E2B_SANDBOX_URL to the address.
func Example() {
	specs, err := service.NewSpecs(&service.Spec{ID: "base",
		Config: sshbox.Config{Image: "debian:stable-slim"}})
	if err != nil {
		panic(err)
	}
	secret, err := os.ReadFile("secret") // at least 32 random bytes, which stay the same
	if err != nil {
		panic(err)
	}
	s, err := service.New(service.Config{Specs: specs, Secret: secret})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	key := os.Getenv("API_KEY")
	handler := e2b.Handler(e2b.Config{Service: s,
		Keys: func(given string) (owner string, ok bool) {
			return "everybody", subtle.ConstantTimeCompare([]byte(given), []byte(key)) == 1
		}})
	if err := http.ListenAndServe("127.0.0.1:3000", handler); err != nil {
		panic(err)
	}
}
