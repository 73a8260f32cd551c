package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/test/ground"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := ground.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// anchors finds every anchor in the shipped code and in the alert rules, with a
// place where it stands.
func anchors(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	dir := root(t)
	fset := token.NewFileSet()
	note := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		name, err := strconv.Unquote(lit.Value)
		if err != nil || name == "" {
			return
		}
		at := fset.Position(lit.Pos())
		path, _ := filepath.Rel(dir, at.Filename)
		found[name] = path + ":" + strconv.Itoa(at.Line)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			if rel == "test" || rel == "tools" || strings.HasPrefix(d.Name(), ".") && rel != "." {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec: // const X event.Anchor = "…"
				if isAnchor(n.Type) {
					for _, v := range n.Values {
						note(v)
					}
				}
			case *ast.KeyValueExpr: // Anchor: "…"
				if k, ok := n.Key.(*ast.Ident); ok && k.Name == "Anchor" {
					note(n.Value)
				}
			case *ast.CallExpr: // event.Anchor("…")
				if isAnchor(n.Fun) && len(n.Args) == 1 {
					note(n.Args[0])
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(read(t, "deploy/alerts.yml"), "\n") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "runbook: "); ok {
			found[name] = "deploy/alerts.yml:" + strconv.Itoa(i+1)
		}
	}
	return found
}

func isAnchor(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name == "Anchor"
	case *ast.Ident:
		return e.Name == "Anchor"
	}
	return false
}

var heading = regexp.MustCompile(`(?m)^## (.+)$`)

func TestRunbookHasASectionForEveryAnchorAndNoOther(t *testing.T) {
	t.Parallel()
	sections := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(read(t, "docs/runbook.md"), -1) {
		if sections[m[1]] {
			t.Errorf("docs/runbook.md has two sections %q", m[1])
		}
		sections[m[1]] = true
	}
	known := anchors(t)
	if len(known) < 50 {
		t.Fatalf("only %d anchors were found in the source: the search is broken", len(known))
	}
	for name, where := range known {
		if !sections[name] {
			t.Errorf("%s points at section %q of docs/runbook.md, which is not there", where, name)
		}
	}
	for name := range sections {
		if known[name] == "" {
			t.Errorf("nothing points at section %q of docs/runbook.md", name)
		}
	}
}

func TestEveryRunbookSectionSaysWhatIsSafeAndWhatToDo(t *testing.T) {
	t.Parallel()
	text := read(t, "docs/runbook.md")
	at := heading.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		name, body := text[m[2]:m[3]], text[m[1]:end]
		for _, part := range []string{"**Looks like**", "**Safe**", "**Do**"} {
			if !strings.Contains(body, part) {
				t.Errorf("section %q has no part %s", name, part)
			}
		}
	}
}
