package localbox

import (
	"testing"

	"github.com/sandshell/sandshell/internal/test/hosttest"
)

func TestCommands(t *testing.T) { hosttest.Commands(t, &host{}) }

func TestPrograms(t *testing.T) { hosttest.Programs(t, &host{}) }

func TestUsers(t *testing.T) { hosttest.Users(t, &host{}) }

func TestDiscard(t *testing.T) { hosttest.Discard(t, &host{}) }
