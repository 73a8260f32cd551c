package config

import (
	"fmt"
	"net/url"
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

// placements are the positions that people put a password in, escaped or not.
var placements = []string{
	"postgres://relay:%@db:5432/shop", "postgresql://relay:%@a,b:1/shop?sslmode=disable", "postgres://db/shop?user=relay&password=%",
	"postgres://db/shop?sslpassword=%&pasword=x", "host=db password=% dbname=shop", "host=db password='%' dbname=shop", "password = %",
}

func FuzzConnectionStringNeverShowsItsPassword(f *testing.F) {
	for _, pw := range []string{password, "a@b", "12/34@56", "12?a=b", `it's \' x`, "a b=c", "12#34", "%zz", "[::1]:12", "a,b:12", "x sslmode=y"} {
		f.Add(pw)
	}
	f.Fuzz(func(t *testing.T, pw string) {
		for _, place := range placements {
			if len(pw) <= leakLength || strings.Contains(place, pw) || strings.Contains(masked+"@:=&?' ", pw) {
				continue
			}
			if strings.Contains(place, "?") && strings.Contains(pw, "&") {
				continue // there, it begins another parameter: nobody can tell
			}
			for _, form := range []string{pw, url.QueryEscape(pw), url.PathEscape(pw)} {
				d := NewDSN(strings.Replace(place, "%", form, 1))
				said := fmt.Sprintf("%v %+v %#v %d %v", d, d, d, d, d.Check())
				said = strings.ReplaceAll(said, encodeHint, "") // fixed text, of all characters
				if strings.Contains(said, pw) || strings.Contains(said, form) && len(form) > leakLength {
					t.Errorf("%s\n%s", d.Reveal(), said)
				}
			}
		}
	})
}
