package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// declared are the functions of the module as the models name them: Func,
// package.Func and Type.Method; and the tests.
func declared(t *testing.T) (code, tests map[string]bool) {
	t.Helper()
	code, tests = map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			switch {
			case !ok:
			case strings.HasSuffix(path, "_test.go"):
				tests[fn.Name.Name] = true
			case fn.Recv == nil:
				code[fn.Name.Name], code[f.Name.Name+"."+fn.Name.Name] = true, true
			default:
				recv := fn.Recv.List[0].Type
				if star, ok := recv.(*ast.StarExpr); ok {
					recv = star.X
				}
				if id, ok := recv.(*ast.Ident); ok {
					code[id.Name+"."+fn.Name.Name] = true
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return code, tests
}

func source(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var invariant = regexp.MustCompile(`(?m)^ \*   ([A-Z]+\d+)  code (\S+)  test (\S+)$`)

// TestInvariantsNameCodeAndTests: what a model stands for exists, and every
// invariant of a model has a name in its header.
func TestInvariantsNameCodeAndTests(t *testing.T) {
	code, tests := declared(t)
	for _, m := range models() {
		named := map[string]bool{}
		src := source(t, m.file)
		for _, n := range invariant.FindAllStringSubmatch(src, -1) {
			named[n[1]] = true
			if !code[n[2]] {
				t.Errorf("%s: %s names the code %s, which does not exist", m.file, n[1], n[2])
			}
			if !tests[n[3]] {
				t.Errorf("%s: %s names the test %s, which does not exist", m.file, n[1], n[3])
			}
		}
		if len(named) == 0 {
			t.Errorf("%s names no invariant", m.file)
		}
		for _, a := range regexp.MustCompile(`MUST\(([A-Z]+\d+),`).FindAllStringSubmatch(src, -1) {
			if !named[a[1]] {
				t.Errorf("%s asserts %s, which its header does not name", m.file, a[1])
			}
		}
	}
}

// TestTheListIsWhole: every file is in the list, with every switch that it has.
func TestTheListIsWhole(t *testing.T) {
	files, err := filepath.Glob("*.pml")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range models() {
		listed[m.file] = true
		if len(m.safe) == 0 || len(m.unsafe) == 0 {
			t.Errorf("%s: a model needs a variant that holds and a twin that does not", m.file)
		}
		var used []string
		for _, s := range m.safe {
			used = append(used, strings.Fields(s)...)
		}
		for _, u := range m.unsafe {
			used = append(used, strings.Fields(u.switches)...)
			if !strings.Contains(source(t, m.file), "MUST("+u.breaks+",") {
				t.Errorf("%s: the twin %s must break %s, which is not asserted", m.file, u.switches, u.breaks)
			}
		}
		has := regexp.MustCompile(`(?m)^#(?:ifn?def |if .*defined\()(\w+)`).FindAllStringSubmatch(source(t, m.file), -1)
		for _, h := range has {
			if !slices.Contains(used, h[1]) {
				t.Errorf("%s has the switch %s, which the list does not use", m.file, h[1])
			}
		}
		for _, u := range used {
			if !slices.ContainsFunc(has, func(h []string) bool { return h[1] == u }) {
				t.Errorf("%s has no switch %s: the twin would be the model", m.file, u)
			}
		}
	}
	for _, f := range files {
		if !listed[f] {
			t.Errorf("%s is not in the list", f)
		}
	}
}

// TestJudge: what must not pass does not.
func TestJudge(t *testing.T) {
	report := "pan:1: assertion violated K1 (at depth 239)\nWarning: Search not completed\nState-vector 144 byte, depth reached 239, errors: 1\n       47 states, stored\n"
	deadlock := strings.Replace(report, "assertion violated K1", "invalid end state", 1)
	good := "State-vector 144 byte, depth reached 755, errors: 0\n   171852 states, stored\n"
	for _, c := range []struct {
		name, out, breaks string
		ok                bool
	}{
		{"holds", good, "", true},
		{"breaks what it must", report, "K1", true},
		{"a model breaks", report, "", false},
		{"a twin holds", good, "K1", false},
		{"a twin breaks something else", report, "K2", false},
		{"a deadlock", deadlock, "", false},
		{"a deadlock in a twin", deadlock, "K1", false},
		{"too deep", "error: max search depth too small\n" + good, "", false},
		{"out of memory", "Warning: Search not completed\n" + good, "", false},
		{"no report", "Segmentation fault", "", false},
	} {
		r, err := parse([]byte(c.out))
		if err == nil {
			err = r.judge(c.breaks)
		}
		if (err == nil) != c.ok {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
	}
}
