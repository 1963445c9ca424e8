//go:build linux

package spawn

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// TestLauncherStaysOutOfTheRuntime enforces invariant 2 on the source: what runs
// after the fork is nosplit and calls nothing but itself and the kernel.
func TestLauncherStaysOutOfTheRuntime(t *testing.T) {
	files := token.NewFileSet()
	var functions []*ast.FuncDecl
	// The first two are assembly, the rest conversions and what the compiler
	// turns into constants.
	allowed := map[string]bool{"sys": true, "vfork": true}
	for _, name := range []string{
		"(*request)", "(*[maxFDs]int32)", "unsafe.Pointer", "unsafe.Sizeof", "unsafe.StringData", "len",
		"byte", "int", "int32", "int64", "uint", "uint32", "uint64", "uintptr",
	} {
		allowed[name] = true
	}
	source, err := parser.ParseFile(files, "serve.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range source.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			functions = append(functions, f)
			allowed[f.Name.Name] = true
		}
	}
	if len(functions) < 20 {
		t.Fatalf("only %d functions found", len(functions))
	}
	for _, f := range functions {
		for _, mark := range []string{"//go:nosplit", "//go:norace"} {
			found := false
			if f.Doc != nil {
				for _, c := range f.Doc.List {
					found = found || c.Text == mark
				}
			}
			if !found {
				t.Errorf("%s: %s lacks %s", files.Position(f.Pos()), f.Name.Name, mark)
			}
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt, *ast.DeferStmt, *ast.FuncLit, *ast.SelectStmt, *ast.SendStmt, *ast.TypeAssertExpr:
				t.Errorf("%s: %T needs the runtime", files.Position(n.Pos()), n)
			case *ast.CallExpr:
				if name := expr(n.Fun); !allowed[name] {
					t.Errorf("%s: calls %s", files.Position(n.Pos()), name)
				}
			}
			return true
		})
	}
}

func expr(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return expr(e.X) + "." + e.Sel.Name
	case *ast.ParenExpr:
		return "(" + expr(e.X) + ")"
	case *ast.StarExpr:
		return "*" + expr(e.X)
	case *ast.ArrayType:
		return strings.Join([]string{"[", expr(e.Len), "]", expr(e.Elt)}, "")
	}
	return "?"
}
