package tracing_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/sandshell/sandshell/internal/test/testenv"
	"github.com/sandshell/sandshell/localbox"
	"github.com/sandshell/sandshell/plugin"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/recording"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/sandshell/sandshell/sandbox/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a traced box and the recorder of its spans.
func open(t testing.TB) (sandbox.Sandbox, *tracetest.SpanRecorder, *trace.TracerProvider) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	inner, err := localbox.New(t.Context(), localbox.Config{})
	require.NoError(t, err)
	box := tracing.New(inner, provider)
	t.Cleanup(func() { box.Close() })
	return box, spans, provider
}

// words describes a span.
func words(s trace.ReadOnlySpan) string {
	var b strings.Builder
	b.WriteString(s.Name())
	for _, a := range s.Attributes() {
		if a.Key == "sandshell.duration" {
			continue
		}
		fmt.Fprintf(&b, " %s=%v", strings.TrimPrefix(string(a.Key), "sandshell."), a.Value.Emit())
	}
	for _, e := range s.Events() {
		fmt.Fprintf(&b, "; %s", e.Name)
		for _, a := range e.Attributes {
			fmt.Fprintf(&b, " %s", a.Value.Emit())
		}
	}
	if s.Status().Code != codes.Unset {
		fmt.Fprintf(&b, "; %v %s", s.Status().Code, s.Status().Description)
	}
	return b.String()
}

func ended(spans *tracetest.SpanRecorder) (all []string) {
	for _, s := range spans.Ended() {
		all = append(all, words(s))
	}
	return all
}

func TestSpans(t *testing.T) {
	t.Parallel()
	box, spans, provider := open(t)
	ctx, parent := provider.Tracer("test").Start(t.Context(), "parent")
	_, err := box.Execute(ctx, "echo geheim; (exit 3)")
	require.NoError(t, err)
	res, err := box.Execute(ctx, "stty -echo; read -r x; stty echo")
	require.NoError(t, err)
	require.Equal(t, sandbox.Secret, res.Awaits)
	require.Len(t, spans.Ended(), 1, "it goes on")
	_, err = box.Execute(ctx, "echo refused")
	require.ErrorIs(t, err, sandbox.ErrBusy)
	_, err = box.Input(ctx, "verborgen\n")
	require.NoError(t, err)
	_, err = box.Execute(ctx, "sleep 1000", sandbox.Timeout(10*time.Millisecond))
	require.ErrorIs(t, err, sandbox.ErrTimeout)
	parent.End()
	_, err = box.Run(t.Context(), &sandbox.Cmd{Args: []string{"sh", "-c", "exit 4"}})
	require.NoError(t, err)
	_, err = box.Run(t.Context(), &sandbox.Cmd{Args: []string{"/nowhere"}})
	require.Error(t, err)

	all := ended(spans)
	require.Len(t, all, 7)
	require.Regexp(t,
		`^execute box=LocalBox session=main exit_code=130 state=exited bytes=\d+; exception .*; `+
			`Error command timed out$`, all[3])
	require.Equal(t, []string{
		"execute box=LocalBox session=main exit_code=3 state=exited bytes=7",
		"execute box=LocalBox session=main state=running bytes=0; exception *sandbox.sentinel " +
			sandbox.ErrBusy.Error() + "; Error " + sandbox.ErrBusy.Error(),
		"execute box=LocalBox session=main exit_code=0 state=exited bytes=0; waiting secret false",
		all[3],
		"parent",
		"run box=LocalBox state=exited exit_code=4",
	}, all[:6])
	require.Contains(t, all[6], "run box=LocalBox state=exited exit_code=127; exception ")
	for _, s := range spans.Ended()[:4] {
		require.Equal(t, parent.SpanContext().SpanID(), s.Parent().SpanID())
		require.Greater(t, s.EndTime().Sub(s.StartTime()), time.Duration(0))
	}
	for _, text := range []string{"geheim", "verborgen", "refused", "sleep"} {
		require.NotContains(t, strings.Join(all, "\n"), text)
	}
}

// TestEnds: each span ends, however its command does.
func TestEnds(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	box, spans, _ := open(t)
	ready := sandbox.Until(regexp.MustCompile("ready\n"))
	s, err := box.Open(ctx)
	require.NoError(t, err)
	_, err = s.Execute(ctx, "echo ready; until [ -e go ]; do sleep 0.01; done", ready)
	require.NoError(t, err)
	_, err = box.Run(ctx, &sandbox.Cmd{Args: []string{"touch", "go"}})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // until the first has ended, of which nobody is told
		_, err := s.Execute(ctx, "echo ready; cat", ready)
		return err == nil
	}, testenv.Limit, 10*time.Millisecond)
	require.NoError(t, s.Close())

	var log bytes.Buffer
	job, err := box.Background(ctx, "echo a job; (exit 5)", sandbox.LogTo(&log))
	require.NoError(t, err)
	<-job.Done()
	same, ok := box.Job(job.ID())
	require.True(t, ok)
	require.Same(t, job, same)
	require.NoError(t, job.Forget())
	require.Empty(t, box.Jobs())
	require.Equal(t, "a job\n", log.String())
	job, err = box.Background(ctx, "read -r x; sleep 1000")
	require.NoError(t, err)
	_, err = job.Until(ctx)
	require.NoError(t, err)
	_, err = box.Execute(ctx, "echo ready; sleep 1000", ready)
	require.NoError(t, err)
	require.NoError(t, box.Close())

	var all []string
	for _, s := range ended(spans) {
		if !strings.Contains(s, "a command is unfinished") && !strings.HasPrefix(s, "run ") {
			all = append(all, s)
		}
	}
	const closed = "; exception *sandbox.sentinel the session or sandbox has been " +
		"closed; Error the session or sandbox has been closed"
	require.ElementsMatch(t, []string{
		"execute box=LocalBox session=session-1 state=running bytes=6",
		"execute box=LocalBox session=session-1 state=running bytes=6" + closed,
		"background box=LocalBox session=job-1 exit_code=5 state=exited bytes=6",
		"background box=LocalBox session=job-2 state=running bytes=0; waiting line false" + closed,
		"execute box=LocalBox session=main state=running bytes=6" + closed,
	}, all)
	require.Len(t, spans.Started(), len(spans.Ended()))
}

// TestWrapped: a box may be traced and recorded, and sandbox.As finds what it is beyond a Sandbox.
func TestWrapped(t *testing.T) {
	t.Parallel()
	box, spans, _ := open(t)
	var cast bytes.Buffer
	rec := recording.New(box, &cast)
	require.NoError(t, plugin.Install(t.Context(), rec,
		plugin.Plugin{Name: "greeting", Env: []string{"GREETING=hello"}}))
	res, err := rec.Execute(t.Context(), `echo "$GREETING"`)
	require.NoError(t, err)
	require.Equal(t, "hello\n", res.Output)
	_, ok := sandbox.As[*localbox.LocalBox](rec)
	require.True(t, ok)
	require.NoError(t, rec.Close())
	require.Contains(t, cast.String(), `hello\r\n`)
	require.Equal(t, []string{"execute box=LocalBox session=main exit_code=0 state=exited bytes=6"},
		ended(spans))
}

// TestConformance: a traced box behaves as the box does.
func TestConformance(t *testing.T) {
	t.Parallel()
	groups := sandboxtest.Groups("Life") // LocalBox has Background every day
	if testenv.All() {
		groups = sandboxtest.Groups("Background", "Life")
	}
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox {
		inner, err := localbox.New(context.Background(), localbox.Config{})
		require.NoError(t, err)
		box := tracing.New(inner, trace.NewTracerProvider(
			trace.WithSyncer(tracetest.NewInMemoryExporter())))
		t.Cleanup(func() { box.Close() })
		return box
	}, testenv.Suite(groups)...)
}

func Example() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter() // or an exporter to your collector
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	inner, err := localbox.New(ctx, localbox.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	box := tracing.New(inner, provider)
	defer box.Close()
	if _, err := box.Execute(ctx, "exit 3"); err != nil {
		fmt.Println(err)
	}
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name)
		for _, a := range span.Attributes {
			if a.Key == "sandshell.exit_code" {
				fmt.Println(a.Key, a.Value.AsInt64())
			}
		}
	}
	// Output:
	// execute
	// sandshell.exit_code 3
}
