package remotebox

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestAbandoned(t *testing.T) {
	const noProcess = 1 << 30 // above pid_max
	here, elsewhere := HostID(), HostID()+"-else"
	for _, c := range []struct {
		name  string
		host  string
		pid   int
		serve string
		phase Phase
		age   time.Duration
		want  bool
	}{
		{"running", here, noProcess, "", Running, time.Hour, false},
		{"ended", here, noProcess, "", Ended, 0, true},
		{"ended, owner alive", here, os.Getpid(), "", Ended, time.Hour, false},
		{"ended, elsewhere", elsewhere, 1, "", Ended, 0, true},
		{"ended, of a service", here, noProcess, "x", Ended, time.Hour, false},
		{"new", here, noProcess, "", NotStarted, 0, true},
		{"new, owner alive", here, os.Getpid(), "", NotStarted, time.Hour, false},
		{"new, of a service", here, noProcess, "x", NotStarted, 0, true},
		{"new, elsewhere, young", elsewhere, 1, "", NotStarted, abandonedAge - 1, false},
		{"new, elsewhere, old", elsewhere, 1, "", NotStarted, abandonedAge, true},
		{"no process named", here, 0, "", NotStarted, 0, false},
	} {
		labels := map[string]string{BoxLabel: "b", PIDLabel: strconv.Itoa(c.pid)}
		if c.serve != "" {
			labels[ServiceLabel] = c.serve
		}
		if got := ReadOwnership(labels, c.host).Abandoned(c.phase, c.age); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
