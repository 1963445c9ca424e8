package screeningwrite

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// plan are the settings of the protocol.
type plan struct {
	mongoURI  string
	members   int
	processes bool
	sync      bool // members answer when a write is on disk
	counting  bool // commands
	trace     bool
	corpus    string        // file of the large corpus; "" is a made one
	rtt       time.Duration // added to every regime's
	studies   int           // of the large corpus, where it is made
}

func parsePlan(settings map[string]string) (plan, error) {
	var errs []error
	flag := func(name string) bool {
		if v := settings[name]; v != "on" && v != "off" {
			errs = append(errs, fmt.Errorf("setting %s is %q; it is on or off", name, v))
		}
		return settings[name] == "on"
	}
	number := func(name string, least, most int) int {
		n, err := strconv.Atoi(settings[name])
		if err != nil || n < least || n > most {
			errs = append(errs, fmt.Errorf("setting %s is %q; it is a number from %d to %d", name, settings[name], least, most))
		}
		return n
	}
	p := plan{
		mongoURI: settings["mongo_uri"], corpus: settings["corpus"], members: number("members", 1, 7), studies: number("studies", smallStudies, 1_000_000),
		processes: flag("processes"), sync: flag("sync"), counting: flag("count_commands"), trace: flag("trace"),
	}
	var err error
	if p.rtt, err = time.ParseDuration(settings["rtt"]); err != nil || p.rtt < 0 || p.rtt > time.Second {
		errs = append(errs, fmt.Errorf("setting rtt is %q; it is a duration of at most a second, such as 2ms", settings["rtt"]))
	}
	return p, errors.Join(errs...)
}
