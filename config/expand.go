package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Lookup finds an environment variable.
type Lookup func(name string) (value string, ok bool)

// expander replaces ${NAME}, ${NAME:-default} and ${file:/path} in a value. What
// it puts in is not looked at again, so that a password may hold any characters.
type expander struct {
	env  Lookup
	read func(path string) ([]byte, error)
}

// expand returns the value, whether a part of it came out of a file, and what is
// wrong with it; several faults in one value are several sentences.
func (x *expander) expand(s string) (value string, hidden bool, faults []string) {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), hidden, faults
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1])
			b.WriteString("${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		inner, rest, ok := strings.Cut(s[i+2:], "}")
		if !ok {
			return "", hidden, append(faults, "a ${ is not closed by }: write $${ if the characters themselves are meant")
		}
		s = rest
		if path, isFile := strings.CutPrefix(inner, "file:"); isFile {
			hidden = true
			content, fault := x.file(path)
			if fault != "" {
				faults = append(faults, fault)
			}
			b.WriteString(content)
			continue
		}
		content, fault := x.variable(inner)
		if fault != "" {
			faults = append(faults, fault)
		}
		b.WriteString(content)
	}
}

func (x *expander) variable(inner string) (value, fault string) {
	name, fallback, hasFallback := strings.Cut(inner, ":-")
	if !variableName(name) {
		return "", "${…} holds neither the name of a variable, NAME:-default, nor file:/path: write $${ if the characters themselves are meant"
	}
	value, ok := x.env(name)
	switch {
	case ok && value != "":
		return value, ""
	case hasFallback:
		return fallback, ""
	case ok:
		return "", "the environment variable " + name + " is empty: give it a value, or write ${" + name + ":-default}"
	default:
		return "", "the environment variable " + name + " is not set: set it, or write ${" + name + ":-default}"
	}
}

func (x *expander) file(path string) (content, fault string) {
	if !filepath.IsAbs(path) {
		return "", "${file:" + path + "} is no absolute path: want one like ${file:/run/secrets/password}"
	}
	data, err := x.read(path)
	if err != nil {
		if p := (*fs.PathError)(nil); errors.As(err, &p) {
			err = p.Err
		}
		return "", "${file:" + path + "} cannot be read: " + err.Error()
	}
	content = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if content == "" {
		return "", "${file:" + path + "} is empty"
	}
	return content, ""
}

func variableName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// largestSecret keeps a path to an endless or wrong file from filling the memory.
const largestSecret = 64 << 10

func readSecret(path string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, largestSecret+1))
	if err == nil && len(data) > largestSecret {
		return nil, errors.New("it is larger than 64 KiB, too large for a value")
	}
	return data, err
}
