//go:build linux

package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/plugin/jupyter"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sshbox"
)

// withJupyter makes a box with the plugin. The first time, it starts from the bare image.
func withJupyter(ctx context.Context) (sandbox.Sandbox, error) {
	return sshbox.New(ctx, sshbox.Config{
		Image: testImage, Network: "none", PluginNetwork: "bridge",
		Plugins: []plugin.Plugin{jupyter.Plugin()},
	})
}

// BenchmarkJupyterCell executes a trivial cell. The floor sends the same message by jupyter_client
// in the box, which measures its time itself.
func BenchmarkJupyterCell(b *testing.B) {
	b.Run("local", func(b *testing.B) {
		if exec.Command("/usr/bin/python3", "-c", "import ipykernel, jupyter_client").Run() != nil {
			b.Skip("no ipykernel and jupyter_client for /usr/bin/python3")
		}
		box, err := localbox.New(b.Context(), localbox.Config{})
		noError(b, err)
		b.Cleanup(func() { box.Close() })
		noError(b, box.InitPlugins(b.Context(), jupyter.Plugin()))
		cells(b, box)
	})
	b.Run("docker", func(b *testing.B) {
		engine(b)
		box, err := withJupyter(b.Context())
		noError(b, err)
		b.Cleanup(func() { box.Close() })
		cells(b, box)
	})
}

// inBox reads a number, runs as many cells, and prints the nanoseconds that each took.
const inBox = `
import json, queue, subprocess, sys, time
from jupyter_client import BlockingKernelClient
info = json.loads(subprocess.check_output(["execute_cli", "--connect"]))["connection"]
info["key"] = info["key"].encode()
client = BlockingKernelClient()
client.load_connection_info(info)
client.start_channels()
client.wait_for_ready()
for line in sys.stdin:
    try:
        while True: client.get_iopub_msg(timeout=0)  # of the cells that came from Go
    except queue.Empty: pass
    took = []
    for _ in range(int(line)):
        began = time.perf_counter_ns()
        id = client.execute("1")
        client.get_shell_msg()
        while True:
            m = client.get_iopub_msg()
            if m["parent_header"].get("msg_id") == id and m["content"].get("execution_state") == "idle": break
        took.append(time.perf_counter_ns() - began)
    print(json.dumps(took), flush=True)
`

func cells(b *testing.B, box sandbox.Sandbox) {
	const batch, rounds = 20, 20
	client, err := jupyter.Connect(b.Context(), box, jupyter.Config{})
	noError(b, err)
	defer client.Close()

	stdin, ask := io.Pipe()
	answer, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		code, err := box.Run(b.Context(), &sandbox.Cmd{
			Args: []string{"/usr/bin/python3", "-c", inBox}, Stdin: stdin, Stdout: stdout})
		if err == nil && code != 0 {
			err = fmt.Errorf("jupyter_client ended with %d", code)
		}
		stdout.CloseWithError(err)
		ended <- err
	}()
	defer func() {
		ask.Close()
		noError(b, <-ended)
	}()
	lines := bufio.NewReader(answer)
	floor := func() (took []time.Duration) {
		_, err := fmt.Fprintln(ask, batch)
		noError(b, err)
		line, err := lines.ReadBytes('\n')
		noError(b, err)
		noError(b, json.Unmarshal(line, &took))
		return took
	}
	ours := func() (took []time.Duration) {
		for range batch {
			began := time.Now()
			r, err := client.Run(b.Context(), "1")
			took = append(took, time.Since(began))
			noError(b, err)
			if r.Text != "1" {
				b.Fatalf("1 is %q", r.Text)
			}
		}
		return took
	}
	floor()
	ours()
	var floors, all []time.Duration
	var ratios []float64
	turn := func(n int) {
		var f, o []time.Duration
		if n%2 == 0 {
			f, o = floor(), ours()
		} else {
			o, f = ours(), floor()
		}
		floors, all = append(floors, f...), append(all, o...)
		ratios = append(ratios, float64(quantile(o, 0.5))/float64(quantile(f, 0.5)))
	}
	n := 0
	for ; b.Loop(); n++ {
		turn(n)
	}
	for ; n < rounds; n++ {
		turn(n)
	}
	report(b, quantile(floors, 0.5), quantile(all, 0.5))
	b.ReportMetric(float64(n), "turns")
	b.ReportMetric(quantile(ratios, 0.25), "ratio-q1")
	b.ReportMetric(quantile(ratios, 0.75), "ratio-q3")
	b.ReportMetric(1.5, "max-ratio")
}

// BenchmarkJupyterNew makes a box from the kept image, to the result of its first cell. The floor
// makes a box without the plugin, to the result of its first command.
func BenchmarkJupyterNew(b *testing.B) {
	b.Run("docker", func(b *testing.B) {
		engine(b)
		box, err := withJupyter(b.Context()) // makes the image
		noError(b, err)
		noError(b, box.Close())
		var last sandbox.Sandbox
		end := func() {
			if last != nil {
				noError(b, last.Close())
			}
			last = nil
		}
		defer end()
		comparison{
			before: end, rounds: 6, maxMore: 2 * time.Second,
			floor: func() {
				box, err := sshbox.New(b.Context(), sshbox.Config{Image: testImage,
					Network: "none"})
				noError(b, err)
				last = box
				execute(b, box, "echo ready")
			},
			ours: func() {
				box, err := withJupyter(b.Context())
				noError(b, err)
				last = box
				client, err := jupyter.Connect(b.Context(), box, jupyter.Config{})
				noError(b, err)
				defer client.Close()
				_, err = client.Run(b.Context(), "1")
				noError(b, err)
			},
		}.run(b)
	})
}
