package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"reflect"
)

// DefaultPath is the file that is read when neither a flag nor WALRELAY_CONFIG names one.
const DefaultPath = "walrelay.yaml"

// largestFile is far above any configuration that a person would write.
const largestFile = 1 << 20

// Load reads the file at path (or the one that WALRELAY_CONFIG names, or
// [DefaultPath], when path is empty), lays the environment and the flags over it
// and checks the whole. env looks variables up; environ lists them as NAME=value,
// for the warnings about variables that nothing reads.
//
// The error (class Halt, FaultUsage) names everything that is wrong, each with
// its place; [errors.As] finds [Problems] in it. Warnings come with or without an
// error. Nothing that Load returns prints a secret.
func Load(path string, env func(string) (string, bool), environ []string, flags ...Override) (*Config, []Warning, error) {
	l := loader{env: env, environ: environ, flags: flags, read: readSecret}
	if l.env == nil {
		l.env = func(string) (string, bool) { return "", false }
	}
	if path == "" {
		path = DefaultPath
		if named, ok := l.env(ConfigVariable); ok && named != "" {
			path = named
		}
	}
	data, err := readFile(path)
	if err != nil {
		if p := (*fs.PathError)(nil); errors.As(err, &p) {
			err = p.Err
		}
		what := "cannot be read: " + err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			what += "; name another file with --config or " + ConfigVariable + " (walrelay.example.yaml is one to begin with)"
		}
		return nil, strangers(environ), refusal(Problems{{Origin{File: path}, "", what}})
	}
	return l.load(path, data)
}

func readFile(path string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, largestFile+1))
	if err == nil && len(data) > largestFile {
		return nil, errors.New("it is larger than 1 MiB, too large for a configuration")
	}
	return data, err
}

type loader struct {
	env     Lookup
	environ []string
	flags   []Override
	read    func(path string) ([]byte, error)
}

func (l *loader) load(file string, data []byte) (*Config, []Warning, error) {
	warnings := strangers(l.environ)
	r := &reader{file: file, expander: &expander{l.env, l.read}, anchors: map[string]*node{}}
	root := r.read(data)
	if root == nil {
		return nil, warnings, refusal(r.problems)
	}
	c := &Config{origins: map[string]Origin{"": root.origin}, hidden: map[string]struct{}{}}
	v := reflect.ValueOf(c).Elem()
	setDefaults(v)
	d := &decoding{origins: c.origins, hidden: c.hidden, problems: r.problems}
	if root.kind == table {
		d.section(v, root, "")
		d.fromEnvironment(c, l.env)
		d.fromFlags(c, l.flags)
		c.doubled(d)
		c.derive()
		d.problems = append(d.problems, c.check(d.problems)...)
	}
	warnings = append(append(append(warnings, c.folded()...), c.filtered()...), c.unpolled()...)
	warnings = append(warnings, c.unordered()...)
	if err := refusal(d.problems); err != nil {
		return nil, warnings, err
	}
	return c, warnings, nil
}

// doubled refuses an option that two spellings give different values.
func (c *Config) doubled(d *decoding) {
	for _, s := range c.Sources {
		path := join("sources", s.Key, "postgres")
		short, long := join(path, "messages_allow_nontransactional"), join(path, "messages", "allow_nontransactional")
		pg := s.Value.Postgres
		if c.given(short) && c.given(long) && pg.MessagesAllowNontransactional != pg.Messages.AllowNontransactional {
			d.refuse(c.origins[short], short, "differs from messages.allow_nontransactional in line %d: keep one of the two", c.origins[long].Line)
		}
	}
}
