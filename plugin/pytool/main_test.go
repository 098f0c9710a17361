package pytool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/moby/moby/client"
	"github.com/sandshell/sandshell/internal/test/boxtest"
	"github.com/sandshell/sandshell/plugin/pytool"
	"github.com/sandshell/sandshell/sshbox"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// each runs test in each kind of box, with the plugin installed.
func each(t *testing.T, test func(t *testing.T, b boxtest.Box)) {
	boxtest.Each(t, test, pytool.Plugin())
}

// An object is a JSON object.
type object map[string]any

// call calls the function f of the source.
func call(t *testing.T, b boxtest.Box, source string, c pytool.Call) (*pytool.Result, error) {
	t.Helper()
	return (&pytool.Tool{Source: source, Function: "f"}).Call(t.Context(), b, c)
}

// value calls the function f of the source and returns its value.
func value(t *testing.T, b boxtest.Box, source string, args object) any {
	t.Helper()
	res, err := call(t, b, source, pytool.Call{Args: args})
	require.NoError(t, err)
	return decoded(t, res.Value)
}

func decoded(t *testing.T, text json.RawMessage) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, &v), "%.100s", text)
	return v
}

// remove removes the box's container, as another program might.
func remove(t *testing.T, b *sshbox.DockerSSHBox) {
	engine, err := client.New(client.FromEnv)
	if assert.NoError(t, err) {
		defer engine.Close()
		_, err = engine.ContainerRemove(context.Background(), b.ContainerID(),
			client.ContainerRemoveOptions{Force: true})
		assert.NoError(t, err)
	}
}
