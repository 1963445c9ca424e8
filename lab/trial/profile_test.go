package trial

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestProfiles(t *testing.T) {
	for _, isolation := range []string{"process", "shared"} {
		t.Run(isolation, func(t *testing.T) {
			dir := t.TempDir()
			folder := filepath.Join(dir, "profiles")
			r := newRigIn(t, dir, Options{Profiles: folder}, "  - {name: a, func: contend}\n  - {name: other, command: [\"true\"]}", "design: {rounds: 12, isolation: "+isolation+"}")
			o := r.once()
			if o.Status != StatusOK || len(o.Notes) > 0 {
				t.Fatalf("%s %q", o.Status, o.Notes)
			}
			var kinds []string
			for _, p := range o.Profiles {
				kinds = append(kinds, p.Kind)
				if _, err := os.Stat(filepath.Join(folder, p.File)); err != nil || !strings.Contains(p.File, ".a.") {
					t.Errorf("%s: %v", p.File, err)
				}
				if p.Kind == "block" && !slices.ContainsFunc(p.Top, func(e ProfileEntry) bool {
					return strings.Contains(e.Function, "lab/trial.contend") && e.Seconds >= 0.001
				}) {
					t.Errorf("who waits is not named: %+v", p)
				}
			}
			if !slices.Equal(kinds, []string{"cpu", "mutex", "block"}) {
				t.Errorf("kinds %q", kinds)
			}
			if o := r.trial("other", 0); len(o.Profiles)+len(o.Notes) > 0 {
				t.Errorf("of a command: %+v %q", o.Profiles, o.Notes)
			}
		})
	}
}

// A function that times nothing has no profile, and one that dies leaves a
// remark and its own failure.
func TestProfilesOfOtherFunctions(t *testing.T) {
	dir := t.TempDir()
	r := newRigIn(t, dir, Options{Profiles: filepath.Join(dir, "p")}, "  - {name: a, func: say}\n  - {name: dies, func: exit}")
	if o := r.once(); o.Status != StatusOK || len(o.Profiles) > 0 || len(o.Notes) != 4 {
		t.Errorf("%s %+v %q", o.Status, o.Profiles, o.Notes)
	}
	o := r.trial("dies", 0)
	if o.Status != StatusFailed || !slices.ContainsFunc(o.Notes, func(n string) bool { return strings.Contains(n, "no mutex profile") }) {
		t.Errorf("%s %q", o.Status, o.Notes)
	}
}

func TestProfileNamesAreSafe(t *testing.T) {
	for _, cell := range []string{"../../etc", strings.Repeat("factor=level,", 40)} {
		p := newProfiler("/p", Slot{Cell: cell, Arm: "a"})
		if filepath.Dir(p.Stem) != "/p" || len(filepath.Base(p.path("block"))) > 255 {
			t.Errorf("%s", p.Stem)
		}
	}
	long := strings.Repeat("x", 200)
	if newProfiler("/p", Slot{Cell: long + "1"}).Stem == newProfiler("/p", Slot{Cell: long + "2"}).Stem {
		t.Error("two cells share a file")
	}
}

// contend has one goroutine wait for another that holds a lock.
func contend() {
	var mu sync.Mutex
	mu.Lock()
	held := make(chan struct{})
	go func() {
		close(held)
		<-time.After(5 * time.Millisecond)
		mu.Unlock()
	}()
	<-held
	mu.Lock()
	mu.Unlock()
}
