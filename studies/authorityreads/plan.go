package authorityreads

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/assaylab/assay/replset"
)

// plan are the settings of the protocol.
type plan struct {
	mongoURI string
	keep     bool
	timing   string // planned, fast or mongodb
	byWrite  bool   // linearizable reads commit a no-op

	settle, measure       time.Duration // of a latency trial
	before, after, outage time.Duration // of a trial with a fault
	faultLoad             string
	deadline              time.Duration // of a read
	people, hot           int
	writeEvery            time.Duration // of each of the writers
}

func parsePlan(settings map[string]string) (plan, error) {
	var errs []error
	text := func(name string, words ...string) string {
		v := settings[name]
		for _, w := range words {
			if v == w {
				return v
			}
		}
		errs = append(errs, fmt.Errorf("setting %s is %q; it is one of %v", name, v, words))
		return ""
	}
	span := func(name string) time.Duration {
		d, err := time.ParseDuration(settings[name])
		if err != nil || d < 0 || d > time.Hour {
			errs = append(errs, fmt.Errorf("setting %s is %q; it is a duration of at most an hour, such as 10s", name, settings[name]))
		}
		return d
	}
	count := func(name string, least int) int {
		n, err := strconv.Atoi(settings[name])
		if err != nil || n < least || n > 1e6 {
			errs = append(errs, fmt.Errorf("setting %s is %q; it is a number from %d to 1000000", name, settings[name], least))
		}
		return n
	}
	p := plan{
		mongoURI: settings["mongo_uri"], keep: text("keep", "on", "off") == "on", timing: text("timing", "planned", "fast", "mongodb"),
		byWrite:   text("confirm", "write", "read-index") == "write",
		faultLoad: settings["fault_load"],
		settle:    span("settle"), measure: span("measure"), before: span("before"), after: span("after"), outage: span("outage"),
		deadline: span("deadline"), people: count("people", 1), hot: count("hot", hottest), writeEvery: span("write_every"),
	}
	if p.deadline < 10*time.Millisecond || p.writeEvery < time.Millisecond || p.measure <= 0 || p.before <= 0 || p.after <= p.outage {
		errs = append(errs, errors.New("settings deadline, write_every, measure and before must be positive, and after longer than outage"))
	}
	return p, errors.Join(errs...)
}

// elections are those of a scenario's set.
func (p plan) elections(s scenario) replset.Timing {
	switch {
	case s.kind == kindDual:
		// An old primary must go on believing for long enough to be asked.
		return replset.MongoDB
	case p.timing == "fast", p.timing == "planned" && (s.fast || s.kind == kindLatency):
		return replset.Fast
	}
	return replset.MongoDB
}
