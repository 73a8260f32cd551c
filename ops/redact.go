package ops

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// redacted stands where a secret stood.
const redacted = "***"

// minSecret is the length in bytes below which a secret is not replaced: it would
// occur everywhere by chance and make every line unreadable.
const minSecret = 4

// Redactor replaces secrets in texts, in each form in which they get there:
// as they are, URL-encoded in any of the usual ways, quoted as in a keyword DSN,
// as a Go string, as JSON.
type Redactor struct {
	mu       sync.Mutex
	forms    map[string]struct{}
	replacer atomic.Pointer[strings.Replacer]
}

// NewRedactor knows no secrets yet.
func NewRedactor() *Redactor { return &Redactor{forms: map[string]struct{}{}} }

// Add makes secrets known. Those shorter than four bytes are left out.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		if len(s) < minSecret {
			continue
		}
		for _, f := range formsOf(s) {
			if len(f) >= minSecret {
				r.forms[f] = struct{}{}
			}
		}
	}
	if len(r.forms) == 0 {
		return
	}
	sorted := make([]string, 0, len(r.forms))
	for f := range r.forms {
		sorted = append(sorted, f)
	}
	// At one place the replacer takes the first pair that fits: longest first, so
	// that no tail of a longer form stays.
	slices.SortFunc(sorted, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(sorted))
	for _, f := range sorted {
		pairs = append(pairs, f, redacted)
	}
	r.replacer.Store(strings.NewReplacer(pairs...))
}

// String is s without secrets.
func (r *Redactor) String(s string) string {
	if p := r.replacer.Load(); p != nil {
		return p.Replace(s)
	}
	return s
}

func (r *Redactor) any() bool { return r.replacer.Load() != nil }

func formsOf(secret string) []string {
	plain := []string{secret}
	// What was configured may be encoded already, as in a URL.
	if s, err := url.PathUnescape(secret); err == nil {
		plain = append(plain, s)
	}
	var forms []string
	for _, s := range plain {
		user := url.UserPassword("", s).String()[1:]
		dsn := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s)
		forms = append(forms, s, dsn, user, lowerHex(user))
		for _, f := range []string{url.QueryEscape(s), url.PathEscape(s), percentAll(s)} {
			forms = append(forms, f, lowerHex(f))
		}
	}
	for _, f := range forms {
		quoted := strconv.Quote(f)
		inner := quoted[1 : len(quoted)-1]
		forms = append(forms, inner, jsonInner(f), jsonInner(inner), zapInner(f), zapInner(inner))
	}
	return forms
}

// lowerHex writes %2F as %2f.
func lowerHex(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
		}
	}
	return string(b)
}

// percentAll encodes all but letters and digits, as browsers' and other
// languages' stricter functions do.
func percentAll(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

// jsonInner is the inside of the JSON string, with < > & escaped as encoding/json does.
func jsonInner(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

// zapInner is the same without that, as zap does.
func zapInner(s string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(jsonInner(s))
}
