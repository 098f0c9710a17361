package faulttest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sandshell/sandshell/sshbox"
)

// withClock adds the fault that sets the machine's clock, if the flag asks for it.
func withClock(faults []fault) []fault {
	if !*clockFlag {
		return faults
	}
	return append(faults, fault{
		name: "clock set", config: func(config *sshbox.Config) {
			config.CapAdd = []string{"SYS_TIME"}
		},
		do: func(r *round, rng *rand.Rand) error {
			for _, to := range []string{"+1 day", "-2 days", "+1 day"} {
				if err := r.inside(fmt.Sprintf(`date -s "$(date -d '%s')"`, to)); err != nil {
					return fmt.Errorf("set the clock: %w", err)
				}
				time.Sleep(upTo(rng, 300*time.Millisecond))
			}
			return nil
		},
	})
}
