// Package authorityreads is the study that decides whether linearizable primary reads
// are good enough to be the only source of authority: always within their deadline,
// never a revoked role, through which faults, and at what cost.
//
// It knows the subject, the set it runs on and the faults of both; it must never know
// how the lab judges what it observes.
package authorityreads

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/authority"
	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

//go:embed protocol.yaml
var full []byte

//go:embed quick.yaml
var quick []byte

// arm is a way to read a person's record.
type arm struct {
	// source makes the reader of one client.
	source func(coll *mongo.Collection, o authority.Options) (authority.Source, error)
	// client are options of the readers' clients; only planted defects have some.
	client func() *options.ClientOptions
	// strong is an arm that must never honour a revoked role. Of the others it is
	// reported whether they do.
	strong bool
}

// arms are those that the protocols name.
func arms() map[string]arm {
	return map[string]arm{
		"majority": {source: newMajority},
		"linearizable": {strong: true, source: func(c *mongo.Collection, o authority.Options) (authority.Source, error) {
			return authority.NewReader(c, o)
		}},
		"shared": {strong: true, source: func(c *mongo.Collection, o authority.Options) (authority.Source, error) {
			r, err := authority.NewReader(c, o)
			if err != nil {
				return nil, err
			}
			return r.Shared(), nil
		}},
	}
}

// New is the study, on sets of which each member is a process of its own that member
// starts, a program that calls replset.RunMember; nil is members in this process.
func New(member []string) *flow.Study {
	return newStudy(member, arms(), map[string][]byte{"": full, "quick": quick})
}

func newStudy(member []string, all map[string]arm, protocols map[string][]byte) *flow.Study {
	r := &run{member: member}
	s := &flow.Study{
		Name:      "authority-reads",
		About:     "may linearizable primary reads be the only source of authority?",
		Protocols: protocols,
		Arms:      map[string]trial.ArmFunc{},
		Begin:     r.begin,
		Skip:      skip,
	}
	for name, a := range all {
		s.Arms[name] = func(ctx context.Context, t *trial.T) error { return r.trial(ctx, t, a) }
	}
	return s
}

// trial carries out one trial of an arm in the scenario that its cell names.
func (r *run) trial(ctx context.Context, t *trial.T, a arm) error {
	p, err := parsePlan(t.Settings)
	if err != nil {
		return err
	}
	sc, err := parseScenario(t.Factors["scenario"])
	if err != nil {
		return err
	}
	if sc.kind != kindLatency {
		if err := sc.sized(p.faultLoad); err != nil {
			return err
		}
	}
	e := &experiment{T: t, run: r, plan: p, arm: a, scenario: sc}
	switch sc.kind {
	case kindLatency:
		return e.latency(ctx)
	case kindDual:
		return e.dualPrimary(ctx)
	}
	return e.throughFault(ctx)
}

// experiment is one trial.
type experiment struct {
	*trial.T
	run      *run
	plan     plan
	arm      arm
	scenario scenario
}

// skip leaves out what the settings do not ask for, and what cannot be done to a set
// that is not ours.
func skip(settings map[string]string, c protocol.Cell) bool {
	sc, err := parseScenario(c.Level("scenario"))
	if err != nil {
		return false // the trial says what is wrong
	}
	if sc.kind == kindLatency {
		return settings["skip_latency"] == "on"
	}
	if settings["mongo_uri"] != "" && sc.fault != faultStepDown {
		return true
	}
	wanted := settings["faults"]
	return wanted != "all" && wanted != "" && !slices.Contains(strings.Split(wanted, ","), c.Level("scenario"))
}

// The kinds of scenario.
const (
	kindLatency = "latency"
	kindFault   = "fault"
	kindDual    = "dual-primary"
)

// The faults.
const (
	faultStepDown   = "stepdown"
	faultKill       = "kill"
	faultPartition  = "partition"
	faultNoMajority = "nomajority"
)

// scenario is what a cell is about.
type scenario struct {
	name     string
	kind     string
	fault    string
	fast     bool // elections of the fast preset, whatever the plan says
	clients  int
	inFlight int // reads of each client
	hotOnly  int // reads of that many hot people and nobody else; 0 reads all
}

func parseScenario(name string) (scenario, error) {
	s := scenario{name: name}
	switch name {
	case faultStepDown, faultKill, faultPartition, faultNoMajority:
		s.kind, s.fault = kindFault, name
		return s, nil
	case faultKill + "-fast":
		s.kind, s.fault, s.fast = kindFault, faultKill, true
		return s, nil
	case kindDual:
		s.kind = kindDual
		return s, nil
	}
	s.kind = kindLatency
	prefix, size, _ := strings.Cut(name, "-")
	err := s.sized(size)
	switch prefix {
	case "latency":
	case "hot":
		s.hotOnly = hottest
	default:
		err = errors.New("not latency or hot")
	}
	if err != nil {
		return s, fmt.Errorf("no scenario %q: %w", name, err)
	}
	return s, nil
}

// sized sets the load, from clients x reads in flight of each.
func (s *scenario) sized(text string) error {
	clients, inFlight, ok := strings.Cut(text, "x")
	var errs [2]error
	s.clients, errs[0] = strconv.Atoi(clients)
	s.inFlight, errs[1] = strconv.Atoi(inFlight)
	if !ok || errs[0] != nil || errs[1] != nil || s.clients < 1 || s.inFlight < 1 || s.clients*s.inFlight > mostReaders {
		return fmt.Errorf("%q is no load; it is clients x reads in flight of each, such as 3x32, and at most %d", text, mostReaders)
	}
	return nil
}

// mostReaders bounds a load: each is a goroutine, and a connection.
const mostReaders = 10_000

// hottest is how many people the scenarios "hot" read.
const hottest = 4
