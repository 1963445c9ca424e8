package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The pages name code: commands that replay a defect, tests that hold an invariant,
// functions that an observation passes. A name that is gone leaves a page that lies, so
// each has to be there. What a page says of them is its author's affair.

// pages are the Markdown files of the module, as a map from path to text.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "*/*.md"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(filepath.Join("..", ".."), path)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.ToSlash(rel)] = string(b)
		}
	}
	for _, must := range []string{"README.md", "ARCHITECTURE.md", "TRACK.md", "docs/artrie.md", "authority/DESIGN.md"} {
		if out[must] == "" {
			t.Fatalf("%s was not found; the patterns are wrong", must)
		}
	}
	return out
}

// testsOf are the names of the functions that go test runs, by package.
func testsOf(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, f := range files(t) {
		if !f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && runnable.MatchString(fn.Name.Name) {
				out[f.pkg] = append(out[f.pkg], fn.Name.Name)
			}
		}
	}
	return out
}

var runnable = regexp.MustCompile(`^(Test|Fuzz|Example|Benchmark)([A-Z_]|$)`)

var (
	fence  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	indent = regexp.MustCompile(`(?m)^(    |\t).*$`)
	span   = regexp.MustCompile("(?s)`[^`]+`")
)

// commands are the calls of go test that a page shows, each with the folder that it is
// called in.
func commands(page string) []string {
	var lines []string
	for _, block := range fence.FindAllString(page, -1) {
		lines = append(lines, strings.Split(block, "\n")...)
	}
	page = fence.ReplaceAllString(page, "")
	lines = append(lines, indent.FindAllString(page, -1)...)
	page = indent.ReplaceAllString(page, "")
	for _, code := range span.FindAllString(page, -1) {
		// A span may go over the end of a line, and in a table a bar is escaped.
		lines = append(lines, strings.NewReplacer("\n", " ", `\|`, "|", "`", "").Replace(code))
	}
	return slices.DeleteFunc(lines, func(l string) bool {
		_, call, is := strings.Cut(l, "go test ")
		// Of somebody else's code, or the name of a form alone.
		elsewhere := strings.Contains(l, "assay compare ") || strings.HasSuffix(l, " .") || call == "-bench"
		return !is || elsewhere
	})
}

// goTest is one call of go test, taken apart.
type goTest struct {
	packages []string
	named    map[string]string // flag (run, bench, fuzz) to its pattern
}

func parseGoTest(line string) (g goTest) {
	dir := ""
	if m := regexp.MustCompile(`cd (\S+) && .*go test `).FindStringSubmatch(line); m != nil {
		dir = m[1] + "/"
	}
	_, line, _ = strings.Cut(line, "go test ")
	line, _, _ = strings.Cut(line, " #")
	g.named = map[string]string{}
	words := regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1)
	for i := 0; i < len(words); i++ {
		w := strings.Trim(words[i], "'")
		flag, value, joined := strings.Cut(strings.TrimLeft(w, "-"), "=")
		switch {
		case strings.HasPrefix(w, "./"):
			g.packages = append(g.packages, dir+strings.TrimPrefix(w, "./"))
		case strings.HasPrefix(w, "-") && slices.Contains([]string{"run", "bench", "fuzz"}, flag):
			if !joined && i+1 < len(words) {
				i++
				value = strings.Trim(words[i], "'")
			}
			g.named[flag] = value
		}
	}
	return g
}

// fault says what a call of go test names and is not there.
func (g goTest) fault(tests map[string][]string) string {
	if len(g.packages) == 0 {
		return "it names no package"
	}
	var names []string
	for _, p := range g.packages {
		tree, all := strings.CutSuffix(p, "...")
		tree = strings.TrimSuffix(tree, "/")
		found := false
		for pkg, have := range tests {
			if pkg == p || all && (tree == "" || pkg == tree || strings.HasPrefix(pkg, tree+"/")) {
				found, names = true, append(names, have...)
			}
		}
		if !found {
			return "there are no tests in ./" + p
		}
	}
	for flag, pattern := range g.named {
		if flag == "run" && (pattern == "-" || pattern == "^$") {
			continue // none of them, beside -bench
		}
		kinds := map[string]string{"run": "Test|Fuzz|Example", "bench": "Benchmark", "fuzz": "Fuzz"}[flag]
		for _, alternative := range strings.Split(pattern, "|") {
			top, _, _ := strings.Cut(alternative, "/") // of a subtest
			re, err := regexp.Compile(top)
			if err != nil {
				return err.Error()
			}
			if !slices.ContainsFunc(names, func(n string) bool { return regexp.MustCompile("^("+kinds+")").MatchString(n) && re.MatchString(n) }) {
				return "-" + flag + " " + alternative + " matches nothing there"
			}
		}
	}
	return ""
}

// TestCommandsInPagesRunSomething: each go test in a page names packages that have tests,
// and each alternative of its pattern one of theirs.
func TestCommandsInPagesRunSomething(t *testing.T) {
	tests := testsOf(t)
	n := 0
	for page, text := range pages(t) {
		for _, line := range commands(text) {
			n++
			if why := parseGoTest(line).fault(tests); why != "" {
				t.Errorf("%s shows %q: %s", page, strings.TrimSpace(line), why)
			}
			if m := regexp.MustCompile(`TestScript/([\w-]+)`).FindStringSubmatch(line); m != nil {
				if _, err := os.Stat(filepath.Join("..", "..", "cmd", "assay", "testdata", "script", m[1]+".txtar")); err != nil {
					t.Errorf("%s shows %q: %v", page, strings.TrimSpace(line), err)
				}
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d calls of go test were found in the pages", n)
	}
}

func TestCommandsThatRunNothingAreFound(t *testing.T) {
	tests := map[string][]string{"a": {"TestOne", "TestTwo", "BenchmarkOne"}, "a/b": {"FuzzThree"}, "other/c": {"TestFour"}}
	for line, sound := range map[string]bool{
		"go test ./a":                      true,
		"go test ./a -run One":             true,
		"go test ./a -run 'One|Two' -v":    true,
		"go test -run One|Gone ./a":        false,
		"go test ./a -run Three":           false,
		"go test ./a/... -run Three":       true,
		"go test ./a/b -fuzz FuzzThree":    true,
		"go test ./a -fuzz One":            false,
		"go test ./gone":                   false,
		"go test ./a -run One/sub":         true,
		"go test ./a -run Gone/sub":        false,
		"go test -run - -bench One ./a":    true,
		"go test -run - -bench Two ./a":    false,
		"go test -run One":                 false,
		"cd other && go test ./c":          true,
		"cd other && go test ./a":          false,
		"LONG=1 go test ./a -timeout 0":    true,
		"go test ./a -run One # a comment": true,
	} {
		if why := parseGoTest(line).fault(tests); (why == "") != sound {
			t.Errorf("%s: %q", line, why)
		}
	}
	page := "text `go test\n./a -run One` and\n```\ngo test ./b\n```\n    go test ./c\n| `go test ./d -run 'x\\|y'` |\n"
	if got := commands(page); len(got) != 4 {
		t.Errorf("found %q", got)
	}
}

// TestTestsInPagesExist: what a page calls a test is one.
func TestTestsInPagesExist(t *testing.T) {
	have := map[string]bool{}
	for _, names := range testsOf(t) {
		for _, n := range names {
			have[n] = true
		}
	}
	n := 0
	for page, text := range pages(t) {
		// What follows a ^ is the beginning of names.
		for _, m := range regexp.MustCompile(`(?:^|[^\w^])((?:Test|Fuzz)[A-Z]\w+)`).FindAllStringSubmatch(text, -1) {
			name := m[1]
			if n++; !have[name] {
				t.Errorf("%s names %s, which no file declares", page, name)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d tests are named in the pages", n)
	}
}

// declared are the names that the module declares: Name, Type.Member, and both with the
// package before them.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, f := range files(t) {
		if f.test {
			continue
		}
		add := func(names ...string) {
			name := strings.Join(names, ".")
			out[name], out[filepath.Base(f.pkg)+"."+name] = true, true
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name.Name)
				} else if recv := receiver(d); recv != "" {
					add(recv, d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					addSpec(s, add)
				}
			}
		}
	}
	return out
}

func receiver(d *ast.FuncDecl) string {
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	if id, ok := typ.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func addSpec(s ast.Spec, add func(...string)) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			add(n.Name)
		}
	case *ast.TypeSpec:
		add(s.Name.Name)
		var members *ast.FieldList
		switch typ := s.Type.(type) {
		case *ast.StructType:
			members = typ.Fields
		case *ast.InterfaceType:
			members = typ.Methods
		default:
			return
		}
		for _, m := range members.List {
			for _, n := range m.Names {
				add(s.Name.Name, n.Name)
			}
		}
	}
}

var (
	dotted = regexp.MustCompile("^[A-Za-z]+(\\.[A-Za-z]+)+$")
	// endings of files, which are no members of anything
	ending = regexp.MustCompile(`\.(go|md|json|jsonl|yaml|yml|html|bin|pml|txt)$`)
)

var step = regexp.MustCompile("(?m)^\\| \\d+ \\| `([\\w.]+)` \\| `([\\w.]+)` \\|")

// TestTheWalkIsOneWalk: in the walk of one observation each function is there, and the
// one that is said to call it names it.
func TestTheWalkIsOneWalk(t *testing.T) {
	bodies := map[string]*ast.FuncDecl{}
	for _, f := range files(t) {
		if f.test {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := []string{filepath.Base(f.pkg), fn.Name.Name}
			if fn.Recv != nil {
				name = slices.Insert(name, 1, receiver(fn))
			}
			bodies[strings.Join(name, ".")] = fn
		}
	}
	steps := step.FindAllStringSubmatch(pages(t)["ARCHITECTURE.md"], -1)
	if len(steps) < 40 {
		t.Fatalf("only %d steps were found; the pattern is wrong", len(steps))
	}
	for _, s := range steps {
		caller, callee := bodies[s[1]], bodies[s[2]]
		if caller == nil || callee == nil {
			t.Errorf("%s, called by %s: one of the two is not there", s[2], s[1])
			continue
		}
		calls := false
		ast.Inspect(caller.Body, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			calls = calls || ok && id.Name == callee.Name.Name
			return !calls
		})
		if !calls {
			t.Errorf("%s does not call %s", s[1], s[2])
		}
	}
}

// TestArchitectureNamesWhatIsThere: each function, type and member that ARCHITECTURE.md
// names is declared, and each file is there.
func TestArchitectureNamesWhatIsThere(t *testing.T) {
	have := declared(t)
	text := pages(t)["ARCHITECTURE.md"]
	n := 0
	for _, code := range span.FindAllString(fence.ReplaceAllString(text, ""), -1) {
		name := strings.Trim(code, "`")
		switch {
		case strings.Contains(name, "/") && ending.MatchString(name):
			if _, err := os.Stat(filepath.Join("..", "..", name)); err != nil && !strings.HasPrefix(name, "testdata/") {
				t.Errorf("ARCHITECTURE.md names the file %s: %v", name, err)
			}
		case dotted.MatchString(name) && !ending.MatchString(name):
			if n++; !have[name] {
				t.Errorf("ARCHITECTURE.md names %s, which nothing declares", name)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d names were found in ARCHITECTURE.md", n)
	}
}
