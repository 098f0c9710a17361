package sshbox

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/moby/moby/client"
)

// sweep removes what programs that were killed have left: containers that have ended, and whose label says that they
// belong to a process of this machine that is no longer there. (The engine's own AutoRemove would do it too, but takes
// with it what there is to know about a container's end.)
func (e *engine) sweep(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	host, err := os.Hostname()
	if err != nil {
		return
	}
	list, err := e.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: client.Filters{}.Add("label", "sandshell.host="+host).Add("status", "exited", "created", "dead")})
	if err != nil {
		return
	}
	for _, c := range list.Items {
		pid, err := strconv.Atoi(c.Labels["sandshell.pid"])
		if err != nil || !gone(pid) {
			continue
		}
		log.Debug("removing a container that a killed process has left", "container", c.ID, "names", c.Names, "pid", pid)
		e.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{RemoveVolumes: true}) // not Force: it has ended
	}
}

// gone reports whether there is certainly no process of that id. Another one of the same id counts as the same.
func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return true // Windows opens it
	}
	defer p.Release()
	return errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
