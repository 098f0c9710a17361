package faulttest

import (
	"testing"

	"github.com/sandshell/sandshell/internal/test/dockertest"
)

// TestMain checks that the rounds leave no goroutine and no container behind.
func TestMain(m *testing.M) { dockertest.Main(m) }
