package config

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Field case C71: the password of a raw DSN in a log line, a parse error, a
// configuration dump. Sources: apache/flink-cdc#4174,
// confluentinc/kafka-connect-jdbc#1196, MaterializeInc/materialize#12470.
// Ideal: no hit for the literal nor for its URL-encoded form, anywhere.

const password = "S3cr3t!%2F@x"

// leaks finds the password, or the better part of it, in whatever form.
func leaks(text string) bool {
	for _, form := range []string{password, url.QueryEscape(password), url.PathEscape(password), "S3cr3t", "S3cr3t!/", "cr3t"} {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// connectionStrings holds the password in every position, well and badly written.
var connectionStrings = map[string]bool{ // whether it can be used
	"postgres://relay:" + url.QueryEscape(password) + "@db:5432/shop":                            true,
	"postgresql://relay:" + url.PathEscape(password) + "@a:5432,[::1]:5433/shop?sslmode=disable": false, // PathEscape leaves the @
	"postgres://relay:S3cr3t%21%252F%40x@a:5432,b,[::1]:5433/shop?sslmode=disable":               true,
	"postgres://relay@db/shop?password=" + url.QueryEscape(password):                             true,
	"postgres://db/shop?user=relay&password=" + url.QueryEscape(password) + "&sslmode=disable":   true,
	"postgres://db/shop?p%61ssword=" + url.QueryEscape(password):                                 true,
	"postgres://db/shop?pasword=" + url.QueryEscape(password):                                    true, // a runtime parameter, to the driver
	"postgres://db/shop?sslpassword=" + url.QueryEscape(password):                                true,
	"host=db user=relay password='" + password + "' dbname=shop":                                 true,
	"host=db user=relay password=" + password + " dbname=shop":                                   true,
	"host = db  password  =  '" + password + "' ":                                                true,
	`host=db password='it\'s ` + password + `'`:                                                  true,
	"host=db pasword=" + password:                                                                true,
	"postgres://relay:" + password + "@db:5432/shop":                                             false, // the @ splits it
	"postgres://relay@db/shop?password=" + password:                                              false,
	"postgres://relay:" + url.QueryEscape(password) + "@db:54x32/shop":                           false,
	"postgres://relay:" + url.QueryEscape(password) + "@db:99999/shop":                           false,
	"postgres://relay:" + url.QueryEscape(password) + "@db/shop?sslmode=wrong":                   false,
	"postgres://relay:S3cr3t%zz@db/shop":                                                         false,
	"postgres://relay:S3cr3t/x@db/shop":                                                          false,
	"postgres://relay:12?S3cr3t@db/shop":                                                         false,
	"postgres://relay:12#S3cr3t@db/shop":                                                         false,
	"postgres://relay:S3cr3t":                                                                    false,
	"postgres://relay:S3cr3t!%2F@x":                                                              true, // x is a host
	"postgres://a@relay:S3cr3t@db":                                                               false,
	"mysql://relay:" + password + "@db/shop":                                                     false,
	"relay:" + password + "@db/shop":                                                             false,
	"host=db password=my S3cr3t dbname=shop":                                                     false,
	"host=db password='S3cr3t dbname=shop":                                                       false,
	"host=db S3cr3t=x":                                                                           true,
	"host=db port=S3cr3t password=S3cr3t":                                                        false,
	"host=db sslmode=S3cr3t! password=S3cr3t!":                                                   false,
	"host=db sslmode=verify-full sslrootcert=/S3cr3t.pem password=S3cr3t":                        false,
	password: false,
}

func TestConnectionStringNeverPrintsItsPassword(t *testing.T) {
	t.Parallel()
	for raw, usable := range connectionStrings {
		d := NewDSN(raw)
		for _, text := range everyPrint(t, d) {
			if leaks(text) {
				t.Errorf("%s\nprints as\n%s", raw, text)
			}
		}
		err := d.Check()
		if (err == nil) != usable {
			t.Errorf("%s: usable %v, error %v", raw, usable, err)
		}
		if err != nil && leaks(err.Error()) {
			t.Errorf("%s\nis refused with\n%v", raw, err)
		}
		if d.Reveal() != raw {
			t.Errorf("%s is kept as %s", raw, d.Reveal())
		}
	}
}

func TestConnectionStringPrintsWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"postgres://relay:pa55word@db:5432,b/shop?sslmode=disable": "postgres://relay:***@db:5432,b/shop?sslmode=disable",
		"postgres://db/shop?password=pa55word&user=relay":          "postgres://db/shop?password=***&user=relay",
		"postgres://db/shop?pasword=pa55word":                      "postgres://db/shop?***=***",
		"host=db  password='pa 55' dbname = shop":                  "host=db password=*** dbname=shop",
		"postgres://shop:shop@db/shop":                             "***", // whoever sees shop knows the password
		"":                                                         "",
	} {
		if got := NewDSN(raw).String(); got != want {
			t.Errorf("%s prints as %s, want %s", raw, got, want)
		}
	}
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	s := NewSecret(password)
	for _, text := range everyPrint(t, s) {
		if leaks(text) {
			t.Errorf("prints as %s", text)
		}
	}
	if s.String() != "***" || NewSecret("").String() != "" || s.Reveal() != password {
		t.Errorf("%s %s", s, s.Reveal())
	}
}

// everyPrint shows a value in every way that code, by slip, may choose.
func everyPrint(t *testing.T, v any) (out []string) {
	t.Helper()
	holder := struct {
		Value any
		Map   map[string]any
	}{v, map[string]any{"k": v}}
	for _, one := range []any{v, &v, []any{v}, holder} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
			out = append(out, fmt.Sprintf(verb, one))
		}
		j, err := json.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		y, err := yaml.Marshal(one)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(j), string(y))
	}
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("m", "v", v, "h", holder)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("m", "v", v, "h", holder)
	for _, enc := range []zapcore.Encoder{
		zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()),
	} {
		zap.New(zapcore.NewCore(enc, zapcore.AddSync(&b), zap.DebugLevel)).Info("m",
			zap.Any("v", v), zap.Reflect("r", v), zap.Any("h", holder), zap.Any("p", &holder))
	}
	return append(out, b.String())
}

// secretive is a configuration with the password wherever a secret may stand.
const secretive = `name: shop
sources:
  orders:
    postgres:
      url: URL
      tables: [public.outbox]
kafka:
  brokers: [localhost:9092]
  tls: {enable: true}
  sasl: {mechanism: PLAIN, user: "${file:/user}", password: 'PASSWORD'}
`

func TestLoadedConfigurationNeverPrintsASecret(t *testing.T) {
	t.Parallel()
	w := world{files: map[string]string{"/user": "S3cr3t-user\n"}}
	for raw, usable := range connectionStrings {
		quoted, err := json.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"", "grace: never\n"} {
			text := strings.NewReplacer("URL", string(quoted), "PASSWORD", password).Replace(secretive) + bad
			c, warnings, err := w.load(text)
			if (err == nil) != (usable && bad == "") {
				t.Errorf("%s: %v", raw, err)
			}
			var said strings.Builder
			said.WriteString(fmt.Sprintf("%v %+v %v", err, err, warnings))
			if c != nil {
				said.WriteString(printed(t, c))
				if c.Kafka.SASL.User != "S3cr3t-user" || c.Kafka.SASL.Password.Reveal() != password {
					t.Error("the values themselves are not there")
				}
				for _, section := range everyPrint(t, c.Kafka.SASL.Password) {
					said.WriteString(section)
				}
				for _, section := range everyPrint(t, c.Sources) {
					said.WriteString(section)
				}
			}
			if leaks(said.String()) {
				t.Errorf("%s\n%s", text, said.String())
			}
		}
	}
}

// Values that come from a file are hidden also where they are put by mistake.
func TestValueFromAFileNeverPrintsWhereverItStands(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{password, "cr3t_name", "987654321", "98765h", "cr3t.host:99", "Cr3t", "{cr3t}"} {
		for _, o := range Options() {
			if !o.section() {
				hideAt(t, o, secret)
			}
		}
	}
}

func TestWhatIsMadeOfAHiddenNameIsHidden(t *testing.T) {
	t.Parallel()
	w := world{files: map[string]string{"/secret": "cr3tname"}}
	text := strings.Replace(minimal, "name: shop", `name: "${file:/secret}"`, 1)
	c := mustLoad(t, w, text)
	if c.Sources[0].Value.Postgres.Slot != "walrelay_cr3tname_orders" || c.Kafka.ClientID != "walrelay-cr3tname" {
		t.Errorf("slot %s, client id %s", c.Sources[0].Value.Postgres.Slot, c.Kafka.ClientID)
	}
	if out := printed(t, c) + fmt.Sprintf("%+v %v", c, *c); strings.Contains(out, "cr3t") {
		t.Error(out)
	}
	// A value that replaces the hidden one is not hidden.
	w.env = map[string]string{"WALRELAY_NAME": "open"}
	if out := printed(t, mustLoad(t, w, text)); !strings.Contains(out, "name: open\n") || !strings.Contains(out, "slot: walrelay_open_orders") {
		t.Error(out)
	}
}

func hideAt(t *testing.T, o Option, secret string) {
	t.Helper()
	w := world{files: map[string]string{"/secret": secret + "\n"}}
	value := `"${file:/secret}"`
	for _, value := range []string{value, "[" + value + "]", "[a, " + value + "," + value + "]"} {
		text, _ := nest(example(o.Path), value)
		for _, doc := range []string{text, overlay(text)} {
			c, warnings, err := w.load(doc)
			said := fmt.Sprintf("%v %v", err, warnings)
			if c != nil {
				said += printed(t, c)
			}
			if leaks(said) || strings.Contains(strings.ToLower(said), strings.ToLower(secret)) {
				t.Errorf("%s: %s\n%s", secret, doc, said)
			}
		}
	}
}

// overlay puts a nested option into the minimal configuration, where it can be.
func overlay(text string) string {
	lines := strings.SplitAfter(text, "\n")
	i := strings.Index(minimal, lines[0])
	if i < 0 {
		return minimal + text
	}
	head, tail := minimal[:i+len(lines[0])], minimal[i+len(lines[0]):]
	for _, l := range lines[1:] {
		if j := strings.Index(tail, l); j >= 0 && strings.HasSuffix(l, ":\n") {
			head, tail = head+tail[:j+len(l)], tail[j+len(l):]
			continue
		}
		head += l
		// The option may stand there already.
		if key, _, ok := strings.Cut(l, ":"); ok {
			if j := strings.Index(tail, key+":"); j >= 0 {
				tail = tail[:j] + tail[j+strings.Index(tail[j:], "\n")+1:]
			}
		}
	}
	return head + tail
}

func TestBrokenYAMLNeverShowsTheLinesAround(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"url: " + password + "\n\tx: [", "url: '" + password, "url: \"" + password, "a: {password: " + password, "- " + password + "\nb: c",
		"password: " + password + ": x: y", "? " + password, "%" + password, "a: !" + password + " {}", "*S3cr3t", "a: |S3cr3t\n b",
		"{S3cr3t: @}", "a: @S3cr3t", "a: `S3cr3t", "a: &S3cr3t", "%YAML S3cr3t\n---\na: b",
	} {
		_, _, err := world{}.load(text)
		if err == nil {
			t.Errorf("accepted %q", text)
			continue
		}
		if strings.Contains(err.Error(), password) {
			t.Errorf("%q\n%v", text, err)
		}
	}
}
