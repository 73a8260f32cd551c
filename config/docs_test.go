package config

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/config.md anew")

const docsPath = "../docs/config.md"

func TestDocsDescribeEveryOption(t *testing.T) {
	t.Parallel()
	want := docs(t)
	if *update {
		if err := os.WriteFile(docsPath, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/config.md differs from the types: run `go generate ./config`")
	}
}

// docs writes the page: the tags say what an option takes, the comment above
// its field what it means.
func docs(t *testing.T) []byte {
	t.Helper()
	comments := fieldComments(t)
	var b bytes.Buffer
	b.WriteString(docsHead)
	section := ""
	for _, o := range Options() {
		meaning := comments[o.owner.Name()+"."+o.field]
		if meaning == "" {
			t.Errorf("%s: no comment above %s.%s", o.Path, o.owner.Name(), o.field)
		}
		if o.section() {
			section = o.Path
			fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", o.Path, meaning)
			if strings.HasPrefix(o.Type, "a mapping") && o.Required {
				b.WriteString("\nRequired.\n")
			}
			continue
		}
		if parent := o.Path[:max(strings.LastIndex(o.Path, "."), 0)]; !strings.HasPrefix(parent, section) || parent == "" {
			section = parent
			heading := "`" + parent + "`, continued"
			if parent == "" {
				heading = "At the top"
			}
			fmt.Fprintf(&b, "\n## %s\n", heading)
		}
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n\n", o.Path, meaning)
		fmt.Fprintf(&b, "- Takes: %s\n", takes(&o))
		switch {
		case o.Required:
			b.WriteString("- Required\n")
		case o.Default != "":
			fmt.Fprintf(&b, "- Default: `%s`\n", o.Default)
		}
		if o.Variable != "" {
			fmt.Fprintf(&b, "- Environment: `%s`\n", o.Variable)
		}
	}
	return b.Bytes()
}

func takes(o *Option) string {
	s := o.Type
	if len(o.Words) > 0 {
		s = "`" + strings.Join(o.Words, "`, `") + "`"
	}
	if isSecret(o.kind) {
		s += "; a secret, it never prints"
	}
	return s
}

// fieldComments reads the comments above the fields of this package's types.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, id := range field.Names {
						found[spec.Name.Name+"."+id.Name] = strings.TrimSpace(field.Doc.Text())
					}
				}
			}
			return true
		})
	}
	return found
}

const docsHead = `# Configuration

<!-- Generated from the types in config/. Do not edit: change the comment or the tag there, then run ` + "`go generate ./config`" + `. -->

walrelay reads one YAML file. ` + "`walrelay.example.yaml`" + ` is an annotated one; ` + "`walrelay config`" + ` prints the effective
configuration with secrets masked. An unknown key, a key that stands twice, a wrong type or an empty value is refused with
its line and path; all of them are reported together.

## Where a value comes from

| | source | example |
|---|---|---|
| 1 | flag | ` + "`--log-level debug`" + ` |
| 2 | environment variable | ` + "`WALRELAY_LOG_LEVEL=debug`" + ` |
| 3 | file | ` + "`log: {level: debug}`" + ` |
| 4 | default | ` + "`info`" + ` |

The first that gives a value wins. The variable of an option is ` + "`WALRELAY_`" + ` and its path in capitals with ` + "`_`" + ` for the
dots; options under a name of your choice (a source, a route) have none. A list is written with commas.
` + "`WALRELAY_CONFIG`" + ` names the file (default ` + "`walrelay.yaml`" + `). A variable that begins with ` + "`WALRELAY_`" + ` and that nothing
reads is warned of.

## In values

| written | means |
|---|---|
| ` + "`${NAME}`" + ` | the environment variable; refused if it is not set or empty |
| ` + "`${NAME:-default}`" + ` | the same, or the default |
| ` + "`${file:/path}`" + ` | the content of the file without its last line break; it never prints |
| ` + "`$${`" + ` | the characters ` + "`${`" + ` |

They are expanded after the YAML was parsed, so that a value cannot change the structure, and what was put in is not expanded
again. Inside ` + "`{ }`" + ` and ` + "`[ ]`" + ` such a value needs quotes. Durations have a unit (` + "`500ms`, `10s`, `5m`" + `); sizes are bytes
or have one (` + "`16MiB`" + ` is 2^24, ` + "`1MB`" + ` is 10^6). YAML anchors, aliases and merge keys (` + "`<<`" + `) may be used.
`
