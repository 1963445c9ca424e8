package lint

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/assaylab/assay"

// imports is the table of ARCHITECTURE.md: for each package, the packages of
// ours that it may import. A prefix ending in /... allows a subtree. What is
// not listed may import nothing of ours.
var imports = map[string][]string{
	"lab/stats":    {},
	"lab/check":    {},
	"lab/protocol": {"lab/stats"},
	"lab/host":     {"lab/protocol"},
	"lab/trial":    {"lab/protocol", "lab/check", "internal/spawn"},
	"lab/ledger":   {"lab/protocol", "lab/host", "lab/trial", "lab/check"},
	"lab/analysis": {"lab/protocol", "lab/host", "lab/trial", "lab/check", "lab/ledger", "lab/stats"},
	"lab/gate":     {"lab/protocol", "lab/check", "lab/analysis"},
	"lab/report":   {"lab/protocol", "lab/host", "lab/trial", "lab/check", "lab/ledger", "lab/stats", "lab/analysis", "lab/gate"},
	"lab/flow":     {"lab/protocol", "lab/host", "lab/trial", "lab/check", "lab/ledger", "lab/analysis", "lab/gate", "lab/report", "internal/spawn"},
	"lab/serve":    {"lab/protocol", "lab/ledger", "lab/report", "lab/flow"},
	"lab/cli":      {"lab/..."},
	"lab":          {"lab/..."},
	"cmd/assay":    {"lab/...", "studies", "replset/cli", "artrie/cli", "studies/screeningwrite/cli"},
	"studies":      {"lab/flow", "studies/..."},

	"studies/lockfreeflip":   {"lab/check", "lab/flow", "lab/trial", "artrie", "artrie/fsys", "internal/peak"},
	"studies/authorityreads": {"lab/...", "authority", "replset", "internal/peak"},

	"studies/screeningwrite":     {"lab/...", "screening/...", "replset", "internal/defect"},
	"studies/screeningwrite/cli": {"lab/...", "studies/screeningwrite"},
	"studies/internal/studytest": {"lab/...", "replset"},

	"examples/...": {"lab", "artrie"},
	"bench/...":    {"lab/...", "artrie", "internal/...", "replset"},

	"replset/query/...": {"replset/query/..."},
	"replset/wire":      {},
	"replset/link":      {},
	"replset/consensus": {"replset/internal/defect", "replset/internal/tables", "internal/wal", "internal/fsys"},
	"replset/store":     {"replset/internal/tables"},
	"replset/server":    {"replset/query/...", "replset/wire", "replset/consensus", "replset/store", "replset/internal/defect"},
	"replset/member":    {"replset/consensus", "replset/link", "replset/server", "replset/store", "replset/internal/..."},
	"replset/cli":       {"replset"},
	"replset":           {"replset/...", "internal/peak"},
	"artrie/...":        {"artrie/...", "internal/wal", "internal/fsys"},
	"screening":         {"screening/tally", "internal/defect"},
	"screening/tally":   {},
	"models":            {},

	"replset/internal/defect":   {},
	"replset/internal/history":  {},
	"replset/internal/ordered":  {},
	"replset/internal/tables":   {"replset/internal/yielding"},
	"replset/internal/yielding": {},
	"authority/...":             {"authority"},

	"internal/spawn":   {},
	"internal/peak":    {},
	"internal/wal":     {"internal/fsys"},
	"internal/fsys":    {},
	"internal/lint":    {},
	"internal/defect":  {},
	"internal/browser": {},
}

// pure are the packages in which a result must depend on the arguments alone.
var pure = map[string][]string{
	"lab/stats":    {"os", "net", "time", "math/rand", "crypto/rand", "io/fs"},
	"lab/check":    {"os", "net", "math/rand", "crypto/rand", "math/rand/v2"},
	"lab/protocol": {"os", "net", "math/rand", "crypto/rand", "math/rand/v2"},
	"lab/analysis": {"os", "net", "time", "math/rand", "crypto/rand", "math/rand/v2"},
	"lab/gate":     {"os", "net", "time", "math/rand", "crypto/rand", "math/rand/v2"},

	"screening/tally": {"os", "net", "math/rand", "crypto/rand", "math/rand/v2"},
}

// mayInit are the packages that may have an init function, with the reason.
// The list may only shrink.
var mayInit = map[string]string{
	"internal/spawn": "the launcher must take over before the program grows; see its package comment",
}

// file is one parsed Go file of the module.
type file struct {
	path string // relative to the module
	pkg  string // relative folder
	test bool
	ast  *ast.File
	src  []byte
}

func files(t *testing.T) []file {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// parsed reads the tree once for all rules.
var parsed = sync.OnceValues(func() ([]file, error) {
	root := filepath.Join("..", "..")
	var out []file
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "runs") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		out = append(out, file{path: rel, pkg: filepath.ToSlash(filepath.Dir(rel)), test: strings.HasSuffix(rel, "_test.go"), ast: f, src: src})
		return nil
	})
	if err == nil && len(out) < 20 {
		err = fmt.Errorf("found only %d Go files; the walk is wrong", len(out))
	}
	return out, err
})

// rule is the entry of the import table that a package falls under.
func rule(pkg string) (allowed []string, found bool) {
	if a, ok := imports[pkg]; ok {
		return a, true
	}
	for parent := pkg; parent != "."; parent = filepath.ToSlash(filepath.Dir(parent)) {
		if a, ok := imports[parent+"/..."]; ok {
			return a, true
		}
	}
	return nil, false
}

func allows(allowed []string, pkg string) bool {
	return slices.ContainsFunc(allowed, func(a string) bool {
		prefix, tree := strings.CutSuffix(a, "/...")
		return a == pkg || tree && (pkg == prefix || strings.HasPrefix(pkg, prefix+"/"))
	})
}

func TestImportsFollowTheTable(t *testing.T) {
	for _, f := range files(t) {
		if f.test {
			continue
		}
		allowed, found := rule(f.pkg)
		if !found {
			t.Errorf("%s: package %s is not in the import table of internal/lint; add it there and in ARCHITECTURE.md", f.path, f.pkg)
			continue
		}
		for _, imp := range f.ast.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			if path == module {
				path = "."
			} else if rest, ours := strings.CutPrefix(path, module+"/"); ours {
				path = rest
			} else {
				continue
			}
			if !allows(allowed, path) {
				t.Errorf("%s imports %s; %s may import %v. Move the shared value down, or pass it in", f.path, path, f.pkg, allowed)
			}
		}
	}
}

func TestTheTableRejects(t *testing.T) {
	for _, c := range []struct{ from, to string }{
		{"lab/stats", "lab/protocol"}, {"lab/protocol", "lab/ledger"}, {"lab/gate", "lab/report"}, {"lab/trial", "lab/ledger"}, {"replset", "lab/check"},
	} {
		if allowed, _ := rule(c.from); allows(allowed, c.to) {
			t.Errorf("the table lets %s import %s", c.from, c.to)
		}
	}
}

func TestPurePackagesStayPure(t *testing.T) {
	for _, f := range files(t) {
		if f.test {
			continue
		}
		for _, imp := range f.ast.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			if slices.Contains(pure[f.pkg], path) {
				t.Errorf("%s imports %s; %s computes from its arguments alone", f.path, path, f.pkg)
			}
		}
	}
}

func TestNoInit(t *testing.T) {
	for _, f := range files(t) {
		if f.test || mayInit[f.pkg] != "" {
			continue
		}
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init function; list things explicitly instead of registering them by import", f.path)
			}
		}
	}
}

func TestNoSleepInTests(t *testing.T) {
	for _, f := range files(t) {
		if !f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && sel.Sel.Name == "Sleep" {
					t.Errorf("%s sleeps; wait for the event, with a deadline", f.path)
				}
			}
			return true
		})
	}
}

func TestNoUtilityDrawers(t *testing.T) {
	for _, f := range files(t) {
		if base := filepath.Base(f.pkg); slices.Contains([]string{"util", "utils", "common", "helpers", "base", "misc", "shared"}, base) {
			t.Errorf("%s: package %q has no noun; name it, or keep the code beside its one user", f.path, base)
		}
	}
}

// Programs of many names are made with lab and have its verbs, so a message says what the
// program that runs is called: see protocol.RemedyError.
func TestMessagesOfLabNameNoProgram(t *testing.T) {
	verb := regexp.MustCompile(`\bassay (init|lint|power|freeze|schema|resume|compare|doctor|analyze|verify|report|serve|run [^i])`)
	for _, f := range files(t) {
		if f.test || f.pkg != "lab" && !strings.HasPrefix(f.pkg, "lab/") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && verb.MatchString(lit.Value) {
				t.Errorf("%s: %s names a program, and another may run", f.path, lit.Value)
			}
			return true
		})
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	docs := map[string]string{}
	for _, f := range files(t) {
		if f.test {
			continue
		}
		docs[f.pkg] += ""
		if f.ast.Doc != nil {
			docs[f.pkg] += f.ast.Doc.Text()
		}
	}
	for pkg, doc := range docs {
		switch example := strings.HasPrefix(pkg, "examples/"); {
		case len(doc) <= 40:
			t.Errorf("package %s has no doc comment that says what it is for", pkg)
		case !example && !boundary.MatchString(doc):
			t.Errorf("package %s does not say what it must never know", pkg)
		}
	}
}

// boundary is how a package says where it ends.
var boundary = regexp.MustCompile(`never\s+know|knows\s+no`)

// maxLines is the length beyond which a file usually has two nouns.
const maxLines = 700

// mayBeLong are the files that may be longer, with the reason. The list may
// only shrink.
var mayBeLong = map[string]string{
	"internal/spawn/serve.go": "the launcher is one program that may call nothing but itself",
}

func TestFilesStaySmall(t *testing.T) {
	for _, f := range files(t) {
		if n := bytes.Count(f.src, []byte("\n")); !f.test && n > maxLines && mayBeLong[f.path] == "" {
			t.Errorf("%s has %d lines; %d is where a file has two nouns", f.path, n, maxLines)
		}
	}
}

func TestArchitectureHasTheTable(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		cells := strings.Split(sc.Text(), "|")
		if len(cells) >= 4 {
			rows[strings.Trim(cells[1], " `/")] = cells[2]
		}
	}
	for pkg, allowed := range imports {
		row, ok := rows[strings.TrimSuffix(pkg, "/...")]
		if !ok {
			t.Errorf("ARCHITECTURE.md has no row for %s in the import table", pkg)
			continue
		}
		for _, a := range allowed {
			if !strings.Contains(row, strings.TrimSuffix(a, "/...")) {
				t.Errorf("ARCHITECTURE.md does not say that %s may import %s", pkg, a)
			}
		}
	}
}
