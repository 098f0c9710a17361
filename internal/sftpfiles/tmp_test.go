package sftpfiles_test

import (
	"testing"

	"github.com/sandshell/sandshell/internal/boxtest"
	"github.com/sandshell/sandshell/sandbox"
	"github.com/sandshell/sandshell/sandbox/sandboxtest"
	"github.com/sandshell/sandshell/sshbox"
)

func TestContainer(t *testing.T) {
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox { return boxtest.Container(t, sshbox.Config{Network: "none"}) }, sandboxtest.Groups("Files"))
}
func TestSSH(t *testing.T) {
	sandboxtest.Run(t, func(t testing.TB) sandbox.Sandbox { return boxtest.SSH(t) }, sandboxtest.Groups("Files"))
}
