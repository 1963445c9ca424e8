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
	allowed := map[string]bool{
		"syscall.RawSyscall6": true,
		"syscall.Errno":       true,
		"unsafe.Pointer":      true,
		"unsafe.Sizeof":       true,
		"unsafe.StringData":   true,
		"len":                 true,
		"byte":                true,
		"int":                 true,
		"int32":               true,
		"int64":               true,
		"uint":                true,
		"uint32":              true,
		"uint64":              true,
		"uintptr":             true,
		"vfork":               true, // assembly on most machines
		"(*request)":          true, // conversions
		"(*[maxFDs]int32)":    true,
	}
	for _, name := range []string{"serve.go", "vfork_other.go"} {
		f, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				functions = append(functions, f)
				allowed[f.Name.Name] = true
			}
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
