package flow

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/protocol"
	"github.com/assaylab/assay/lab/trial"
)

// served is a study whose arms need what Begin starts.
func served(log *[]string) *Study {
	running := false
	arm := func(_ context.Context, t *trial.T) error {
		if !running {
			return errors.New("nothing was begun")
		}
		*log = append(*log, t.Settings["place"]+t.Settings["depth"])
		t.Record("ops", float64(t.Seed%1000))
		return nil
	}
	return &Study{
		Name: "served", Protocols: map[string][]byte{"": []byte(servedYAML)},
		Arms: map[string]trial.ArmFunc{"plain": arm, "plus": arm},
		Skip: func(told map[string]string, c protocol.Cell) bool {
			return told["place"] == "elsewhere" && c.Name == "fault=kill"
		},
		Begin: func(_ context.Context, s *Session) (func(context.Context) error, error) {
			if s.Settings["depth"] == "broken" {
				return nil, errors.New("no server today")
			}
			running = true
			s.Note("begun at " + s.Settings["place"])
			if err := os.WriteFile(filepath.Join(s.Scratch, "data"), nil, 0o600); err != nil {
				return nil, err
			}
			return func(context.Context) error {
				running = false
				_, err := os.Stat(filepath.Join(s.Scratch, "data"))
				*log = append(*log, "ended")
				return err
			}, nil
		},
	}
}

const servedYAML = `
assay: 1
name: served
question: Is more more?
settings:
  - {name: place, value: here, effect: place}
  - {name: depth, value: "1"}
arms:
  - {name: control, func: plain}
  - {name: treatment, func: plus}
factors: [{name: fault, levels: [none, kill]}]
design: {rounds: 3, seed: 3, isolation: shared}
metrics: [{name: ops, source: json, better: higher}]
checks: [{name: served, scope: run, shell: 'true'}]
primary: {metric: ops}
decision: {preset: four-branch}
`

func runServed(t *testing.T, s *Study, n Narrowing) (*Outcome, *protocol.Lock, error) {
	t.Helper()
	plan, err := ReadStudy(s, "")
	if err != nil {
		t.Fatal(err)
	}
	n.Warmup = -1
	reason, err := n.Apply(plan)
	if err != nil {
		return nil, nil, err
	}
	lock, err := Freeze(context.Background(), plan, reason)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Run(context.Background(), plan, lock, Options{Out: filepath.Join(t.TempDir(), "run")})
	return o, lock, err
}

func TestAStudyBeginsAndEnds(t *testing.T) {
	var log []string
	o, lock, err := runServed(t, served(&log), Narrowing{})
	if err != nil {
		t.Fatal(err)
	}
	if len(log) != 13 || log[12] != "ended" || log[0] != "here1" {
		t.Errorf("it went %q", log)
	}
	if lock.Exploratory != "" || o.Verdict.Class == gate.Invalid {
		t.Errorf("exploratory %q, %s", lock.Exploratory, o.Verdict.Class)
	}
	noted := false
	for _, r := range o.Run.Records {
		noted = noted || r.Note != nil && r.Note.Text == "begun at here"
	}
	if !noted {
		t.Error("what Begin noted is not in the ledger")
	}
}

func TestASettingIsInTheLock(t *testing.T) {
	var log []string
	for name, c := range map[string]struct {
		set         map[string]string
		told        string
		exploratory string
	}{
		"place":   {map[string]string{"place": "there"}, "there1", ""},
		"plan":    {map[string]string{"depth": "2"}, "here2", `depth set to "2"`},
		"same":    {map[string]string{"depth": "1"}, "here1", ""},
		"skipped": {map[string]string{"place": "elsewhere"}, "elsewhere1", "without cells fault=kill"},
	} {
		log = nil
		o, lock, err := runServed(t, served(&log), Narrowing{Settings: c.set})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if log[0] != c.told {
			t.Errorf("%s: told %q", name, log[0])
		}
		if c.exploratory == "" && lock.Exploratory != "" || !strings.Contains(lock.Exploratory, c.exploratory) {
			t.Errorf("%s: exploratory %q", name, lock.Exploratory)
		}
		if c.exploratory != "" && o.Verdict.Class != gate.Inconclusive {
			t.Errorf("%s: a run of something else than the plan is %s", name, o.Verdict.Class)
		}
		if v := o.Run.Protocol.Told(); v["place"]+v["depth"] != c.told {
			t.Errorf("%s: the ledger's protocol says %v", name, v)
		}
	}
	for _, bad := range []map[string]string{{"nosuch": "1"}, {"depth": "a\nb"}} {
		if _, _, err := runServed(t, served(&log), Narrowing{Settings: bad}); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

func TestAStudyThatCannotBeginMeasuresNothing(t *testing.T) {
	var log []string
	_, _, err := runServed(t, served(&log), Narrowing{Settings: map[string]string{"depth": "broken"}})
	if err == nil || !strings.Contains(err.Error(), "no server today") || len(log) != 0 {
		t.Errorf("%v, %q", err, log)
	}
}

// TestAChecksCellsAreLeftOut: a check that no cell is left for is not one that failed
// to be made.
func TestAChecksCellsAreLeftOut(t *testing.T) {
	var log []string
	s := served(&log)
	y := strings.Replace(string(s.Protocols[""]), "checks: [", "checks: [{name: killed, scope: trial, shell: 'true', cells: {fault: kill}}, {name: calm, scope: trial, shell: 'true', cells: {fault: none}}, ", 1)
	s.Protocols = map[string][]byte{"": []byte(y)}
	o, _, err := runServed(t, s, Narrowing{Settings: map[string]string{"place": "elsewhere"}})
	if err != nil {
		t.Fatal(err)
	}
	p := o.Run.Protocol
	if len(p.Checks) != 2 || p.Checks[0].Name != "calm" {
		t.Errorf("checks %+v", p.Checks)
	}
	if o.Verdict.Class != gate.Inconclusive {
		t.Errorf("%s: %s", o.Verdict.Class, o.Verdict.Why)
	}
}
