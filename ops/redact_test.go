package ops_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"pgregory.net/rapid"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

type secretStringer struct{ s string }

func (s secretStringer) String() string { return s.s }

func (s secretStringer) MarshalLogObject(e zapcore.ObjectEncoder) error {
	e.AddString("inner", s.s)
	return nil
}

// verbose prints more with %+v, as errors with stacks do.
type verbose struct{ s string }

func (v verbose) Error() string              { return "short" }
func (v verbose) Format(f fmt.State, _ rune) { fmt.Fprint(f, v.s) }

// Case C71: a secret never leaves, in whatever kind of field and encoding it hides.
func TestASecretNeverReachesTheLog(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		`S3cr3t!%2F@x`, `pa"ss\wo'rd`, `tést <&> 100%`, "line\nbreak\ttab", `plain-one`,
	} {
		for _, format := range []string{"json", "console"} {
			l, out := newLog(t, ops.LogOptions{Format: format, Level: "debug"})
			l.Secrets.Add(secret)
			for i, form := range writings(secret) {
				text := "dial " + form + " failed"
				log := l.Logger.With(zap.String("dsn", text))
				log.Warn(fmt.Sprint(i)+text,
					zap.String("a", text), zap.Error(errors.New(text)), zap.Error(fmt.Errorf("wrapped: %w", errors.New(text))),
					zap.NamedError("v", verbose{text}), zap.Stringer("s", secretStringer{text}), zap.Object("o", secretStringer{text}),
					zap.Strings("l", []string{text}), zap.ByteString("b", []byte(text)), zap.Any("any", struct{ URL string }{text}),
					zap.Errors("errs", []error{errors.New(text)}), zap.Dict("d", zap.String("x", text)))
			}
			all := out.String() + fmt.Sprint(l.Recent.Lines())
			hunt(t, secret, format, all)
			if !strings.Contains(all, "***") {
				t.Errorf("%s: nothing was replaced", format)
			}
			if format == "json" {
				for line := range strings.Lines(out.String()) {
					if !json.Valid([]byte(line)) {
						t.Errorf("replacing broke the JSON: %s", line)
					}
				}
			}
		}
	}
}

// writings are the ways in which a secret gets into a text.
func writings(secret string) []string {
	plain, err := url.PathUnescape(secret)
	if err != nil {
		plain = secret
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword("app", plain), Host: "db"}
	return []string{
		secret, plain, url.QueryEscape(secret), url.PathEscape(secret), u.String(), fmt.Sprintf("%q", secret), fmt.Sprintf("%q", u.String()),
		"password='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(secret) + "'",
		strings.ToLower(url.QueryEscape("/")) + url.QueryEscape(secret),
	}
}

func hunt(t *testing.T, secret, where, text string) {
	t.Helper()
	for _, form := range writings(secret)[:4] {
		if strings.Contains(text, form) {
			t.Errorf("%s: the secret %q appears as %q", where, secret, form)
		}
	}
}

func TestALongTextIsCutAfterItsSecretsAreGone(t *testing.T) {
	t.Parallel()
	l, out := newLog(t, ops.LogOptions{})
	l.Secrets.Add("hunter2hunter2")
	// The cut would fall into the secret and leave a half that nobody recognises.
	l.Logger.Warn("w", zap.Error(errors.New(strings.Repeat("x", 2040)+"hunter2hunter2 and more")))
	if strings.Contains(out.String(), "hunter") {
		t.Error("a part of the secret is left at the cut")
	}
	if out.Len() > 2300 {
		t.Errorf("a line of %d bytes: not cut", out.Len())
	}
}

func TestSecretsNeverReachTheStatusPage(t *testing.T) {
	t.Parallel()
	const secret = `S3cr3t!%2F@x`
	l, _ := newLog(t, ops.LogOptions{})
	l.Secrets.Add(secret)
	o := ops.New(ops.Options{Log: l})
	cond := event.Condition{What: "cannot reach postgres://app:" + secret + "@db", Remedy: "look at password=" + url.QueryEscape(secret)}
	o.Source("orders", ops.SourceProbes{State: func() (event.State, event.Condition) { return event.StateHalted, cond }})
	o.Broker().Condition("sasl", cond)
	o.Warn(cond)
	l.Logger.Error("x", zap.String("url", cond.What))
	for _, path := range []string{"/", "/api/status", "/readyz", "/healthz", "/metrics"} {
		w := httptest.NewRecorder()
		o.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		hunt(t, secret, path, w.Body.String())
	}
}

func TestShortSecretsDoNotMakeTheLogUnreadable(t *testing.T) {
	t.Parallel()
	r := ops.NewRedactor()
	r.Add("", "a", "abc")
	if got := r.String("abc a banana"); got != "abc a banana" {
		t.Errorf("%q: short secrets were replaced", got)
	}
}

func TestNoSecretSurvivesInAnyText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[a-zA-Z0-9!%@/'"\\ +&<]{6,20}`).Draw(t, "secret")
		r := ops.NewRedactor()
		r.Add("another-secret", secret)
		for _, form := range writings(secret) {
			got := r.String("before " + form + " after")
			if strings.Contains(got, secret) {
				t.Fatalf("%q leaves %q", form, got)
			}
		}
	})
}
