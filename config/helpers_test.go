package config

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/event"
)

// minimal is the smallest configuration that loads.
const minimal = `name: shop
sources:
  orders:
    postgres:
      url: postgres://relay@localhost:5432/shop?sslmode=disable
      tables: [public.outbox]
kafka:
  brokers: [localhost:9092]
`

// world is the environment and the files that a test's configuration sees.
type world struct {
	env   map[string]string
	files map[string]string
	flags []Override
}

func (w world) load(text string) (*Config, []Warning, error) {
	l := loader{env: lookup(w.env), read: w.read, flags: w.flags}
	for name, value := range w.env {
		l.environ = append(l.environ, name+"="+value)
	}
	return l.load("walrelay.yaml", []byte(text))
}

func (w world) read(path string) ([]byte, error) {
	if text, ok := w.files[path]; ok {
		return []byte(text), nil
	}
	return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
}

func lookup(env map[string]string) Lookup {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

func mustLoad(t *testing.T, w world, text string) *Config {
	t.Helper()
	c, _, err := w.load(text)
	if err != nil {
		t.Fatalf("load:\n%s\n%v", text, err)
	}
	return c
}

// problemsOf loads what must be refused, and says why it was.
func problemsOf(t *testing.T, w world, text string) Problems {
	t.Helper()
	_, _, err := w.load(text)
	if err == nil {
		t.Fatalf("accepted:\n%s", text)
	}
	var e *event.Error
	if !errors.As(err, &e) || e.Class != event.Halt || e.Fault != event.FaultUsage || e.Anchor != AnchorConfiguration || e.Remedy == "" {
		t.Fatalf("not a usage error with remedy and anchor: %#v", err)
	}
	var found Problems
	if !errors.As(err, &found) {
		t.Fatalf("no Problems in %v", err)
	}
	return found
}

// wantProblem demands a problem at the path and line whose sentence holds all parts.
func wantProblem(t *testing.T, found Problems, path string, line int, parts ...string) {
	t.Helper()
	for _, p := range found {
		if p.Path != path || line != 0 && p.Origin.Line != line {
			continue
		}
		for _, part := range parts {
			if !strings.Contains(p.What, part) {
				t.Errorf("%s: %q does not say %q", path, p.What, part)
			}
		}
		if line != 0 && (p.Origin.File != "walrelay.yaml" || p.Origin.Column == 0) {
			t.Errorf("%s: no file and column in %+v", path, p.Origin)
		}
		return
	}
	t.Errorf("no problem at %s in line %d; there is\n%v", path, line, found)
}

func printed(t *testing.T, c *Config) string {
	t.Helper()
	var b strings.Builder
	if err := c.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// nest writes a path as YAML, one key a line, and the value behind the last; it
// returns the line of the last key.
func nest(path, value string) (text string, line int) {
	var b strings.Builder
	keys := strings.Split(path, ".")
	for i, key := range keys {
		b.WriteString(strings.Repeat("  ", i) + key + ":")
		if i < len(keys)-1 {
			b.WriteByte('\n')
		}
	}
	return b.String() + " " + value + "\n", len(keys)
}

// example puts names for the placeholders of an option's path.
func example(path string) string {
	return strings.NewReplacer("<source>", "orders", "<route>", "paid", "<header>", "region", "<field>", "event_id").Replace(path)
}
