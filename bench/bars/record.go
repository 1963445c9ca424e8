package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
)

// The files in docs.
const (
	recordFile = "figures.json"
	pageFile   = "figures.md"
)

// recordSchema is the version of the record.
const recordSchema = 1

// record is the last figure of each bar.
type record struct {
	Schema  int     `json:"schema"`
	Figures []entry `json:"figures"` // in the order of the list
}

// entry is what one bar's source gave when it was last run.
type entry struct {
	Bar string `json:"bar"`
	// Values are the figure, or one figure of each run; none where there is none, and then
	// Why says why.
	Values []float64 `json:"values,omitempty"`
	Why    string    `json:"why,omitempty"`
	Unit   string    `json:"unit,omitempty"` // of the bar

	Command  string    `json:"command"`
	Machine  string    `json:"machine"`
	Revision string    `json:"revision,omitempty"` // of the source that was measured
	Time     time.Time `json:"time"`               // when it began, UTC
	Seconds  float64   `json:"seconds"`            // how long the command, or the run, took
	Others   *float64  `json:"others,omitempty"`   // share of the processors that others used meanwhile
	Output   []string  `json:"output,omitempty"`   // the lines that the figure was taken from
}

// blank is true where there is no figure. A figure beside a reason why there is none is
// none.
func (e entry) blank() bool { return len(e.Values) == 0 || e.Why != "" }

// mostLines bounds the output that is kept of one figure.
const mostLines = 8

// entry is the figure of a bar out of what its source left.
func (m *measured) entry(b bar) entry {
	e := entry{
		Bar: b.id, Command: m.source.line, Machine: machine(m.env), Revision: revision(m.env.Git),
		Time: m.began.Truncate(time.Second), Seconds: math.Round(m.took.Seconds()*10) / 10,
	}
	if !math.IsNaN(m.others) {
		share := math.Round(m.others*1000) / 1000
		e.Others = &share
	}
	err := m.err
	var got taken
	if err == nil {
		got, err = b.take.from(m, b.want)
	}
	if err == nil && m.source.study == "" && got.unit != b.unit {
		err = fmt.Errorf("the figure is in %q and the limit in %q", got.unit, b.unit)
	}
	if err != nil {
		e.Why = withoutPaths(err.Error())
		return e
	}
	e.Values, e.Unit = got.values, b.unit
	for _, line := range got.lines[:min(len(got.lines), mostLines)] {
		e.Output = append(e.Output, withoutPaths(line))
	}
	return e
}

var absolutePath = regexp.MustCompile(`(^|[\s"'(=:])/(?:[^\s/"'():]+/)*[^\s/"'():]+`)

// withoutPaths leaves out folders of this machine, which have no place in the repository.
func withoutPaths(s string) string {
	return absolutePath.ReplaceAllString(strings.Join(strings.Fields(s), " "), "$1…")
}

func revision(g host.GitState) string {
	if g.State != host.OK {
		return ""
	}
	if g.Dirty {
		return g.Revision[:12] + " and changes"
	}
	return g.Revision[:12]
}

// readRecord reads the record; a file that does not exist is an empty one.
func readRecord(path string) (*record, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &record{Schema: recordSchema}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w; restore it with git, or delete it and measure again", filepath.Base(path), err)
	}
	if r.Schema != recordSchema {
		return nil, fmt.Errorf("%s has schema %d; this program knows %d", filepath.Base(path), r.Schema, recordSchema)
	}
	return r, nil
}

// find is the entry of a bar; the zero entry, which has no figure, where there is none.
func (r *record) find(id string) entry {
	if i := slices.IndexFunc(r.Figures, func(e entry) bool { return e.Bar == id }); i >= 0 {
		return r.Figures[i]
	}
	return entry{Bar: id}
}

func (r *record) put(e entry) {
	r.Figures = append(slices.DeleteFunc(r.Figures, func(old entry) bool { return old.Bar == e.Bar }), e)
}

// note puts figures into the record as it is now: another run of this program may have
// added to it while these were measured.
func note(docs string, all []section, found []entry) error {
	r, err := readRecord(filepath.Join(docs, recordFile))
	if err != nil {
		return err
	}
	for _, e := range found {
		r.put(e)
	}
	return r.write(docs, all)
}

// write replaces record and page in docs. What is no bar any more goes.
func (r *record) write(docs string, all []section) error {
	ordered := record{Schema: recordSchema, Figures: []entry{}}
	for _, b := range bars(all) {
		if e := r.find(b.id); e.Command != "" {
			ordered.Figures = append(ordered.Figures, e)
		}
	}
	b, err := json.MarshalIndent(ordered, "", "  ")
	if err != nil {
		return err
	}
	if err := ledger.WriteFile(filepath.Join(docs, recordFile), append(b, '\n')); err != nil {
		return err
	}
	reasons, err := readReasons(docs, all)
	if err != nil {
		return err
	}
	return ledger.WriteFile(filepath.Join(docs, pageFile), page(all, &ordered, reasons))
}
