//go:build linux

package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/linktest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// roundTrip is T of the distant link, and slowRate is how many bytes per second the slow link
// carries each way: 1 Mbit/s.
const (
	roundTrip = 50 * time.Millisecond
	slowRate  = 1e6 / 8
)

// distantPlaces runs a benchmark with boxes at the other end of a link.
func distantPlaces(b *testing.B, c linktest.Config,
	f func(b *testing.B, box func() sandbox.Sandbox)) {
	at := func(b *testing.B, dial func() (sandbox.Sandbox, error)) func() sandbox.Sandbox {
		return func() sandbox.Sandbox {
			box, err := dial()
			noError(b, err)
			b.Cleanup(func() { box.Close() })
			return box
		}
	}
	for _, name := range []string{"ssh", "boxd"} {
		b.Run(name, func(b *testing.B) {
			s := startSSHD(b)
			if name == "boxd" {
				s.boxd = s.dir
				near, err := s.box(b.Context()) // brings boxd
				noError(b, err)
				noError(b, near.Close())
			}
			c := c
			c.Server = s.address
			s.address = linktest.Start(b, c).Address
			f(b, at(b, func() (sandbox.Sandbox, error) { return s.box(context.Background()) }))
		})
	}
	b.Run("docker", func(b *testing.B) {
		near := engine(b)
		c := c
		socket, isUnix := strings.CutPrefix(near.DaemonHost(), "unix://")
		if !isUnix {
			b.Skip("the engine is not on a Unix socket: ", near.DaemonHost())
		}
		dir, err := os.MkdirTemp("", "sandshell-link-")
		noError(b, err)
		b.Cleanup(func() { os.RemoveAll(dir) })
		c.Network, c.Listen, c.Server = "unix", filepath.Join(dir, "engine"), socket
		far, err := client.New(client.WithHost("unix://" + linktest.Start(b, c).Address))
		noError(b, err)
		b.Cleanup(func() { far.Close() })
		f(b, at(b, func() (sandbox.Sandbox, error) {
			return sshbox.New(context.Background(),
				sshbox.Config{Image: testImage, Network: "none", Docker: far})
		}))
	})
}

// A distance measures calls on a link. The floor is one round trip.
type distance struct {
	call     func()
	after    func() // runs after each call, and is not measured
	rounds   int
	maxTrips float64 // 0: no limit
}

func (d distance) run(b *testing.B) {
	b.Helper()
	var took []time.Duration
	one := func() {
		begin := time.Now()
		d.call()
		took = append(took, time.Since(begin))
		if d.after != nil {
			d.after()
		}
	}
	one() // what the first call prepares for the others
	took = nil
	for range max(d.rounds, b.N) {
		one()
	}
	ours := quantile(took, 0.5)
	report(b, roundTrip, ours)
	b.ReportMetric(float64(len(took)), "turns")
	b.ReportMetric(float64(ours)/float64(roundTrip), "round-trips")
	if d.maxTrips > 0 {
		b.ReportMetric(d.maxTrips, "max-round-trips")
	}
}

// BenchmarkDistant measures calls on a link whose round trip takes 50 ms, in round trips.
func BenchmarkDistant(b *testing.B) {
	link := linktest.Config{RoundTrip: roundTrip}
	type call struct {
		name  string
		begin func(b *testing.B, box sandbox.Sandbox) distance
	}
	for _, c := range []call{
		{"Execute", func(b *testing.B, box sandbox.Sandbox) distance {
			return distance{maxTrips: 1.1, rounds: 20, call: func() { execute(b, box, ":") }}
		}},
		{"Fails", func(b *testing.B, box sandbox.Sandbox) distance {
			return distance{maxTrips: 1.1, rounds: 20, call: func() {
				r, err := box.Execute(b.Context(), "(exit 3)")
				noError(b, err)
				if r.ExitCode != 3 {
					b.Fatalf("%+v", r)
				}
			}}
		}},
		{"Open", func(b *testing.B, box sandbox.Sandbox) distance {
			var s sandbox.Session
			return distance{rounds: 5, call: func() {
				var err error
				s, err = box.Open(b.Context())
				noError(b, err)
			}, after: func() { s.Close() }}
		}},
		{"Stat", func(b *testing.B, box sandbox.Sandbox) distance {
			return distance{maxTrips: 1.1, rounds: 10, call: func() {
				_, err := box.Files().Stat(b.Context(), "/etc")
				noError(b, err)
			}}
		}},
		{"ReadFile", func(b *testing.B, box sandbox.Sandbox) distance {
			return distance{maxTrips: 2.2, rounds: 10, call: func() {
				_, err := box.Files().ReadFile(b.Context(), "/etc/passwd", 0)
				noError(b, err)
			}}
		}},
		{"WriteFile", func(b *testing.B, box sandbox.Sandbox) distance {
			return distance{maxTrips: 2.2, rounds: 10, call: func() {
				noError(b, box.Files().WriteFile(b.Context(), "/tmp/sandshell-bench-distant",
					make([]byte, 1<<10), 0o644))
			}}
		}},
		{"ReadDir", func(b *testing.B, box sandbox.Sandbox) distance {
			execute(b, box, "mkdir -p /tmp/sandshell-bench-dir && touch /tmp/sandshell-bench-dir/x")
			return distance{maxTrips: 2.2, rounds: 10, call: func() {
				_, err := box.Files().ReadDir(b.Context(), "/tmp/sandshell-bench-dir")
				noError(b, err)
			}}
		}},
		{"CopyTo", func(b *testing.B, box sandbox.Sandbox) distance {
			return copies(b, box, true, 1<<10)
		}},
		{"CopyFrom", func(b *testing.B, box sandbox.Sandbox) distance {
			return copies(b, box, false, 1<<10)
		}},
		{"CopyTo1MB", func(b *testing.B, box sandbox.Sandbox) distance {
			return copies(b, box, true, 1<<20)
		}},
		{"CopyFrom1MB", func(b *testing.B, box sandbox.Sandbox) distance {
			return copies(b, box, false, 1<<20)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			distantPlaces(b, link, func(b *testing.B, box func() sandbox.Sandbox) {
				c.begin(b, box()).run(b)
			})
		})
	}
	b.Run("New", func(b *testing.B) {
		distantPlaces(b, link, func(b *testing.B, box func() sandbox.Sandbox) {
			var last sandbox.Sandbox
			distance{rounds: 5, maxTrips: 8, call: func() { last = box() },
				after: func() { last.Close() }}.run(b)
		})
	})
}

// copies copies one file of that size.
func copies(b *testing.B, box sandbox.Sandbox, to bool, size int) distance {
	here := filepath.Join(tree(b, 1, size), "x")
	const there = "/tmp/sandshell-bench-distant-copy"
	noError(b, box.CopyTo(b.Context(), here, there))
	d := distance{rounds: 5, call: func() { noError(b, box.CopyTo(b.Context(), here, there)) }}
	if !to {
		back := filepath.Join(b.TempDir(), "back")
		d.call = func() { noError(b, box.CopyFrom(b.Context(), there, back)) }
	}
	return d
}

// BenchmarkSlow copies a file of random bytes over a link of 1 Mbit/s. The floor is the time that
// the link takes for as many bytes.
func BenchmarkSlow(b *testing.B) {
	const size = 256 << 10
	for _, name := range []string{"CopyTo", "CopyFrom"} {
		b.Run(name, func(b *testing.B) {
			distantPlaces(b, linktest.Config{Rate: slowRate},
				func(b *testing.B, box func() sandbox.Sandbox) {
					c := copies(b, box(), name == "CopyTo", size)
					var took []time.Duration
					for range max(b.N, 3) {
						begin := time.Now()
						c.call()
						took = append(took, time.Since(begin))
					}
					report(b, size*time.Second/slowRate, quantile(took, 0.5))
					b.ReportMetric(float64(len(took)), "turns")
					b.ReportMetric(1.1, "max-ratio")
				})
		})
	}
}
