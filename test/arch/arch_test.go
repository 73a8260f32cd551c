package arch

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// pkg is what go list says of a package.
type pkg struct {
	ImportPath, Dir  string
	Standard         bool
	Imports, GoFiles []string
}

// name is the path below the module.
func (p *pkg) name() string { return strings.TrimPrefix(p.ImportPath, module) }

var list = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Imports,GoFiles", module+"...")
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
})

func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := list()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("go list knows %d packages", len(all))
	}
	return all
}

// shipped reports whether the package is part of the program or the library.
func (p *pkg) shipped() bool { return p.name() != "test" && !strings.HasPrefix(p.name(), "test/") }

func under(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return path == r || strings.HasPrefix(path, r+"/") })
}

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func TestShippedPackagesImportOnlyWhatTheirRankAllows(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if !p.shipped() {
			continue
		}
		r, known := rules[p.name()]
		if !known {
			t.Errorf("package %s has no rule: add it to rules_test.go with its rank and the reason", p.name())
			continue
		}
		for _, path := range p.Imports {
			switch ours := strings.TrimPrefix(path, module); {
			case ours != path:
				if !slices.Contains(r.ours, ours) {
					t.Errorf("%s imports %s, which it may not: %s", p.name(), ours, r.why)
				}
			case standard(path):
				if reason := impure[path]; r.pure && reason != "" {
					t.Errorf("%s imports %s and is pure (%s): %s", p.name(), path, reason, r.why)
				}
			case !under(path, r.foreign):
				t.Errorf("%s imports %s, which it may not: %s", p.name(), path, r.why)
			}
		}
	}
}

func TestRulesThemselvesPointDownwards(t *testing.T) {
	t.Parallel()
	for name, r := range rules {
		if r.why == "" {
			t.Errorf("the rule of %s gives no reason", name)
		}
		for _, other := range r.ours {
			o, known := rules[other]
			switch {
			case !known:
				t.Errorf("%s may import %s, which has no rule", name, other)
			case o.rank >= r.rank:
				t.Errorf("%s (rank %d) may import %s (rank %d): imports go to a lower rank", name, r.rank, other, o.rank)
			}
		}
	}
}

func TestNothingShippedImportsTests(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if !p.shipped() {
			continue
		}
		for _, path := range p.Imports {
			if strings.HasPrefix(path, module+"test/") || path == "testing" {
				t.Errorf("%s imports %s", p.name(), path)
			}
		}
	}
}

func TestPurePackagesAskNoClockAndStartNoGoroutine(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if !rules[p.name()].pure {
			continue
		}
		eachFile(t, &p, func(fset *token.FileSet, f *ast.File) {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: a goroutine in pure package %s", fset.Position(n.Pos()), p.name())
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(forbiddenTime, n.Sel.Name) {
						t.Errorf("%s: time.%s in pure package %s", fset.Position(n.Pos()), n.Sel.Name, p.name())
					}
				}
				return true
			})
		})
	}
}

// TestNoPackageKeepsALogger: a logger is handed in, so that a test or a second
// relay in one process has its own.
func TestNoPackageKeepsALogger(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if !p.shipped() {
			continue
		}
		eachFile(t, &p, func(fset *token.FileSet, f *ast.File) {
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok || g.Tok != token.VAR {
					continue
				}
				ast.Inspect(g, func(n ast.Node) bool {
					if _, function := n.(*ast.FuncLit); function {
						return false
					}
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && (x.Name == "zap" || x.Name == "zapcore") && strings.Contains(s.Sel.Name, "Logger") {
							t.Errorf("%s: a logger of package %s", fset.Position(n.Pos()), p.name())
						}
					}
					return true
				})
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "zap" && slices.Contains([]string{"L", "S", "ReplaceGlobals"}, s.Sel.Name) {
						t.Errorf("%s: zap.%s is the process's logger", fset.Position(n.Pos()), s.Sel.Name)
					}
				}
				return true
			})
		})
	}
}

// TestLoggingStaysAtTheEdges: a room reports through its Observer.
func TestLoggingStaysAtTheEdges(t *testing.T) {
	t.Parallel()
	for name, r := range rules {
		logs := under("go.uber.org/zap", r.foreign)
		if logs != (name == "ops" || name == "cmd/walrelay") {
			t.Errorf("the rule of %s lets it log: %t", name, logs)
		}
	}
}

func eachFile(t *testing.T, p *pkg, look func(*token.FileSet, *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		look(fset, f)
	}
}
