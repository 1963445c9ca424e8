package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/assaylab/assay/replset"
)

const (
	module  = "go.mongodb.org/mongo-driver/v2"
	version = "v2.2.3" // the last whose module holds the JSON
)

// errNoModule says that the driver cannot be had on this machine.
var errNoModule = errors.New("the driver's module cannot be downloaded")

// driver is the driver's module, its two test binaries and a folder to work in.
type driver struct {
	root string // of the module
	dir  string
}

// packages are the two packages with tests that need a server.
var packages = map[string]string{
	"integration": module + "/internal/integration",
	"unified":     module + "/internal/integration/unified",
}

// prepare gets the module and compiles its tests, from a module of our own that
// requires it.
func prepare(ctx context.Context) (d *driver, err error) {
	d = &driver{}
	if d.dir, err = os.MkdirTemp("", "conformance"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.remove()
		}
	}()
	mod := fmt.Sprintf("module conformance\n\ngo 1.26\n\nrequire %s %s\n", module, version)
	if err := os.WriteFile(filepath.Join(d.dir, "go.mod"), []byte(mod), 0o644); err != nil {
		return nil, err
	}
	out, err := d.gocmd(ctx, "mod", "download", "-json", module+"@"+version)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoModule, err)
	}
	var info struct{ Dir string }
	if err := json.Unmarshal(out, &info); err != nil {
		return nil, err
	}
	d.root = info.Dir
	for name, path := range packages {
		if _, err := d.gocmd(ctx, "test", "-mod=mod", "-c", "-o", d.binary(name), path); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *driver) remove() { os.RemoveAll(d.dir) }

func (d *driver) binary(name string) string { return filepath.Join(d.dir, name+".test") }

func (d *driver) gocmd(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = d.dir
	c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.Bytes(), nil
}

// source is where both runners look for JSON, below a project folder.
const source = "testdata/specifications/source"

// layout makes the project folder in which a slot shows a folder of the module.
func (d *driver) layout(p part) (project string, err error) {
	project = filepath.Join(d.dir, "project")
	if err := os.RemoveAll(project); err != nil {
		return "", err
	}
	slot := filepath.Join(project, source, filepath.FromSlash(p.slot))
	if err := os.MkdirAll(filepath.Dir(slot), 0o755); err != nil {
		return "", err
	}
	if p.data == "" {
		return project, os.MkdirAll(slot, 0o755)
	}
	data := filepath.Join(d.root, "testdata", filepath.FromSlash(p.data))
	if _, err := os.Stat(data); err != nil {
		return "", err
	}
	return project, copyJSON(slot, data)
}

// copyJSON copies the JSON files of a folder, and of those below it into the same
// one, because the runners read one folder only. Files of the first format, which no
// runner reads any more, become the second; see modernize.
func copyJSON(to, from string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() || filepath.Ext(path) != ".json" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if b, err = modernize(b); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name := filepath.Join(to, e.Name())
		if _, err := os.Stat(name); err == nil {
			return fmt.Errorf("two files named %s below %s", e.Name(), from)
		}
		return os.WriteFile(name, b, 0o644)
	})
}

// result is what came of one test.
type result struct {
	name    string // folder/file.json/test, or folder/TestName/subtest
	outcome string // pass, fail or skip
	output  string
	seconds float64
}

func (d *driver) runFolder(ctx context.Context, f folder) ([]result, error) {
	var all []result
	var failed []error
	for _, p := range f.parts {
		results, err := d.runPart(ctx, f.name, p)
		if err == nil {
			err = again(results, func(test string) ([]result, error) { return d.runPart(ctx, f.name, p.alone(f.name, test)) })
		}
		all = append(all, results...)
		if err != nil {
			failed = append(failed, err)
		}
	}
	return all, errors.Join(failed...)
}

// again runs those of the results that failed and are unsteady.
func again(results []result, run func(test string) ([]result, error)) error {
	for i := range results {
		for n := 1; n < unsteadyRuns && results[i].outcome == "fail" && unsteady[results[i].name] != ""; n++ {
			second, err := run(results[i].name)
			if err != nil {
				return err
			}
			for _, r := range second {
				if r.name == results[i].name && r.outcome == "pass" { // left out is not passed
					results[i] = r
				}
			}
		}
	}
	return nil
}

// alone is the part with one of its tests.
func (p part) alone(folder, test string) part {
	var each []string
	for _, name := range strings.Split(strings.TrimPrefix(test, folder+"/"), "/") {
		each = append(each, "^"+regexp.QuoteMeta(name)+"$")
	}
	p.tests = strings.Join(each, "/")
	return p
}

// partTimeout ends a binary that hangs; what it had not finished has then failed.
const partTimeout = 15 * time.Minute

// runPart runs a binary against a set of its own.
func (d *driver) runPart(ctx context.Context, name string, p part) ([]result, error) {
	project, err := d.layout(p)
	if err != nil {
		return nil, err
	}
	start, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	set, err := replset.New(start, replset.Options{})
	if err != nil {
		return nil, err
	}
	out, runErr := d.exec(ctx, set.URI(), project, p)
	if err := errors.Join(set.Check(), set.Close()); err != nil {
		return nil, fmt.Errorf("the set after the tests: %w", err)
	}
	results, rest := leaves(name, p, out)
	if at := strings.Index(rest, "panic: "); at >= 0 {
		return results, fmt.Errorf("the tests %s %s ended in the middle: %s", p.tests, p.data, rest[at:])
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("%s ran no test: %w\n%s", p.tests, runErr, out)
	}
	return results, ctx.Err()
}

func (d *driver) exec(ctx context.Context, uri, project string, p part) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", "tool", "test2json", "-t", d.binary(p.binary),
		"-test.v=test2json", "-test.run", p.tests, "-test.skip", p.skip, "-test.timeout", partTimeout.String())
	c.Dir = filepath.Join(project, source)
	if p.binary == "unified" || p.data == "" {
		c.Dir = filepath.Join(d.root, strings.TrimPrefix(packages[p.binary], module))
	}
	c.Env = append(os.Environ(), "MONGODB_URI="+uri, "PROJECT_DIRECTORY="+project, "SKIP_CSOT_TESTS=true", "GOWORK=off", "GOFLAGS=")
	var out, stderr bytes.Buffer
	c.Stdout, c.Stderr = &out, &stderr
	err := c.Run()
	if out.Len() == 0 {
		return stderr.Bytes(), err
	}
	return out.Bytes(), err // the exit status says only that something failed
}

// leaves are the tests that have none below them, and those that failed by
// themselves. rest is what the binary printed outside of tests.
func leaves(folder string, p part, out []byte) (list []result, rest string) {
	var order []string
	byName := map[string]*result{}
	parents, failed := map[string]bool{}, map[string]bool{}
	sc := bufio.NewScanner(bytes.NewReader(out))
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		var e struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if json.Unmarshal(sc.Bytes(), &e) != nil {
			continue
		}
		// A panic is printed in the middle of the test that it ends.
		if e.Test == "" || rest != "" || strings.HasPrefix(e.Output, "panic: ") {
			rest += e.Output
		}
		if e.Test == "" {
			continue
		}
		r := byName[e.Test]
		if r == nil {
			// A binary that dies leaves what it was at without an end.
			r = &result{name: folder + "/" + shortName(p, e.Test), outcome: "fail"}
			byName[e.Test] = r
			order = append(order, e.Test)
			for i := strings.LastIndexByte(e.Test, '/'); i > 0; i = strings.LastIndexByte(e.Test[:i], '/') {
				parents[e.Test[:i]] = true
			}
		}
		switch e.Action {
		case "output":
			r.output += e.Output
		case "pass", "fail", "skip":
			r.outcome, r.seconds = e.Action, e.Elapsed
		}
	}
	for _, name := range order {
		if byName[name].outcome != "fail" || parents[name] {
			continue
		}
		for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
			failed[name[:i]] = true
		}
	}
	for _, name := range order {
		if !parents[name] || byName[name].outcome == "fail" && !failed[name] {
			list = append(list, *byName[name])
		}
	}
	return list, rest
}

// shortName is a test's name without what says only where the runner looked.
func shortName(p part, test string) string {
	for _, prefix := range []string{"TestUnifiedSpec/", "TestUnifiedSpecs/"} {
		test = strings.TrimPrefix(test, prefix+p.slot+"/")
	}
	return test
}

// slotPattern lets -test.run find exactly one slot: each element of a path is a
// pattern of its own.
func slotPattern(slot string) string {
	return strings.ReplaceAll(regexp.QuoteMeta(slot), "/", "$/^") + "$"
}
