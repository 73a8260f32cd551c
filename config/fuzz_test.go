package config

import (
	"fmt"
	"strings"
	"testing"
)

func FuzzLoadNeverPanicsNorShowsASecret(f *testing.F) {
	f.Add([]byte(minimal), "S3cr3t!%2F@x")
	f.Add([]byte(everything), "S3cr3t")
	f.Add([]byte(strings.Replace(minimal, "postgres://relay@", "postgres://relay:${file:/secret}@", 1)), "S3cr3t!%2F@x")
	f.Add([]byte(minimal+"  sasl: {mechanism: PLAIN, user: u, password: '${file:/secret}'}\n"), "pa55word")
	f.Add([]byte("a: &a [*a, {b: *a}]\n<<: *a\n"), "pa55word")
	f.Add([]byte("name: ${file:/secret}\ngrace: ${file:/secret}\nroutes: {a: {topic: '${file:/secret}'}}"), "pa55word")
	f.Fuzz(func(t *testing.T, text []byte, secret string) {
		// A short secret, or one that the file spells out as well, proves nothing.
		secret = "§" + secret + "§"
		if strings.Contains(string(text), "§") {
			return
		}
		c, warnings, err := world{files: map[string]string{"/secret": secret + "\n"}}.load(string(text))
		said := fmt.Sprint(warnings, err)
		if c != nil {
			var b strings.Builder
			if err := c.Print(&b); err != nil {
				t.Fatal(err)
			}
			said += b.String()
			if err := c.Validate(); err != nil {
				t.Errorf("loaded, but %v", err)
			}
			said += fmt.Sprintf("%v %+v %#v", c, *c, c)
		}
		if strings.Contains(said, "§") {
			t.Errorf("%s\n%s", text, said)
		}
	})
}

func FuzzConnectionStringNeverShowsItsPassword(f *testing.F) {
	for raw := range connectionStrings {
		f.Add(raw)
	}
	f.Fuzz(func(_ *testing.T, raw string) {
		d := NewDSN(raw)
		_ = d.String()
		_ = d.Check()
	})
}
