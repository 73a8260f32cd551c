package slot

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"
)

// attempts describes each address in turn: host, and how its TLS is verified.
func attempts(cfg *pgx.ConnConfig) string {
	var out []string
	for _, a := range append([]*pgconn.FallbackConfig{{Host: cfg.Host, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...) {
		mode := "plain"
		switch {
		case a.TLSConfig == nil:
		case !a.TLSConfig.InsecureSkipVerify && a.TLSConfig.ServerName == a.Host:
			mode = "full"
		case a.TLSConfig.VerifyPeerCertificate != nil:
			mode = "ca"
		default:
			mode = "unverified"
		}
		out = append(out, a.Host+" "+mode)
	}
	return strings.Join(out, ", ")
}

func TestRemoteServerIsVerifiedUnlessSaidOtherwise(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for dsn, want := range map[string]string{
		"postgres://u@127.0.0.1/db":                             "127.0.0.1 plain",
		"postgres://u@[::1]:5432/db":                            "::1 plain",
		"host=localhost user=u":                                 "localhost plain",
		"host=/run/postgresql user=u":                           "/run/postgresql plain",
		"postgres://u@db.example.com/db":                        "db.example.com full",
		"postgres://u@10.0.0.7/db":                              "10.0.0.7 full",
		"host=db.example.com user=u":                            "db.example.com full",
		"postgres://u@a.example,b.example/db":                   "a.example full, b.example full",
		"host=localhost,b.example user=u":                       "localhost plain, b.example full",
		"postgres://u@db.example.com/db?sslmode=require":        "db.example.com unverified",
		"postgres://u@db.example.com/db?sslmode=prefer":         "db.example.com unverified, db.example.com plain",
		"host=db.example.com user=u sslmode = 'prefer'":         "db.example.com unverified, db.example.com plain",
		"host=db.example.com user=u sslmode=allow":              "db.example.com plain, db.example.com unverified",
		"host=db.example.com user=u sslmode=disable":            "db.example.com plain",
		"postgres://u@db.example.com/db?sslmode=verify-ca":      "db.example.com ca",
		"postgres://u@db.example.com/db?sslmode=verify-full":    "db.example.com full",
		"postgres://u@localhost/db?sslmode=require":             "localhost unverified",
		"postgres://u@db.example.com/db?sslrootcert=system":     "db.example.com full",
		"postgres://u@db.example.com/db?sslsni=0":               "db.example.com full",
		"host=h user=u password='sslmode is prefer' dbname=db1": "h full",
	} {
		cfg, err := ParseDSN(dsn)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if got := attempts(cfg); got != want {
			t.Errorf("%s: got %s, want %s", dsn, got, want)
		}
	}
}

func TestPrimaryIsLookedForUnlessAnyServerWillDo(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]bool{
		"host=127.0.0.1 user=u":                              true,
		"host=127.0.0.1 user=u target_session_attrs=any":     false,
		"host=127.0.0.1 user=u target_session_attrs=primary": true,
		"postgres://u@127.0.0.1/db?target_session_attrs=any": false,
	} {
		cfg, err := ParseDSN(dsn)
		if err != nil || (cfg.ValidateConnect != nil) != want {
			t.Errorf("%s: checks the server: %v, %v", dsn, cfg.ValidateConnect != nil, err)
		}
	}
}

func TestUnverifiedServerIsNamed(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for dsn, want := range map[string]string{
		"postgres://u@127.0.0.1/db":                         "",
		"postgres://u@db.example.com/db":                    "",
		"postgres://u@db.example.com/db?sslmode=require":    "certificate is not verified",
		"postgres://u@db.example.com/db?sslmode=disable":    "without encryption",
		"postgres://u@db.example.com/db?sslmode=verify-ca":  "not its name",
		"postgres://u@localhost,b.example/db?sslmode=allow": "without encryption",
	} {
		cfg, err := ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, why := unverified(&cfg.Config); !strings.Contains(why, want) || (want == "") != (why == "") {
			t.Errorf("%s: got %q, want %q", dsn, why, want)
		}
	}
}

// TestBothConnectionsGetThePasswordThatWasWritten is case #50 of the peers' issues:
// special characters broke the replication connection alone.
func TestBothConnectionsGetThePasswordThatWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.StringMatching(`[ -~äß€]{1,20}`).Draw(t, "password")
		keyword := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password)
		for _, dsn := range []string{
			(&url.URL{Scheme: "postgres", User: url.UserPassword("u", password), Host: "127.0.0.1:5432", Path: "/db"}).String(),
			fmt.Sprintf("host=127.0.0.1 user=u password='%s' dbname=db", keyword),
		} {
			o := Options{Source: "s", DSN: dsn, Messages: []string{"m"}}.WithDefaults()
			ordinary, err := o.ConnConfig()
			if err != nil {
				t.Fatal(err)
			}
			replication, err := o.ReplicationConfig()
			if err != nil {
				t.Fatal(err)
			}
			if ordinary.Password != password || replication.Password != password {
				t.Fatalf("%q became %q and %q", password, ordinary.Password, replication.Password)
			}
			if replication.RuntimeParams["replication"] != "database" || ordinary.RuntimeParams["replication"] != "" {
				t.Fatalf("replication is %q and %q", replication.RuntimeParams["replication"], ordinary.RuntimeParams["replication"])
			}
		}
	})
}

func TestErrorsNeverHoldAPieceOfTheConnectionString(t *testing.T) {
	t.Parallel()
	const secret = "Tr0ub4dor"
	for _, dsn := range []string{
		"postgres://u:" + secret + "@h:port/db",
		"postgres://u:" + secret + "%zz@h/db",
		"postgres://u:x/" + secret + "@h/db",
		"postgres://u:x:" + secret + "@h:5432:1/db",
		"postgres://u:x?" + secret + "@h/db",
		"postgres://h/db?password=" + secret + "&sslmode=" + secret,
		"postgres://h/db?target_session_attrs=" + secret,
		"host=h password='" + secret,
		"host=h password = " + secret + " port=" + secret,
		"host=h user=u " + secret,
		"mysql://u:" + secret + "@h/db",
		"postgres://u:" + secret + "@h/db?connect_timeout=" + secret,
		"postgres://u:" + secret + "@h/db?sslrootcert=/does/not/exist",
		"postgres://u:" + secret + "@h/db?channel_binding=" + secret,
	} {
		_, err := ParseDSN(dsn)
		if err == nil {
			continue // odd, but readable
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error repeats the password: %v", err)
		}
	}
}

func TestPinnedSettingsHaveNoSecondSpelling(t *testing.T) {
	t.Setenv("PGTZ", "Europe/Berlin")
	o := Options{Source: "s", DSN: "host=127.0.0.1 user=u datestyle=German Statement_Timeout=1", Messages: []string{"m"}}.WithDefaults()
	for _, params := range []map[string]string{must(o.ConnConfig()).RuntimeParams, must(o.ReplicationConfig()).RuntimeParams} {
		seen := map[string]string{}
		for name, value := range params {
			lower := strings.ToLower(name)
			if other, twice := seen[lower]; twice {
				t.Errorf("%s is %q and %q", name, other, value)
			}
			seen[lower] = value
		}
		if seen["timezone"] != "UTC" || seen["datestyle"] != "ISO,MDY" || seen["application_name"] != "walrelay/s" {
			t.Errorf("got %v", params)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestMistypedURLIsRefusedInsteadOfLeadingToADefaultServer(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres:u:secret@db:5432/shop?sslmode=disable",
		"postgres:/u:secret@db:5432/shop?sslmode=disable",
		"http://u:secret@db/shop?sslmode=disable",
	} {
		_, err := ParseDSN(dsn)
		if err == nil {
			t.Errorf("%s is taken", dsn)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error repeats the password: %v", err)
		}
	}
	for _, dsn := range []string{"postgres://u@db/shop?application_name=x&auto_explain.log_min_duration=1s", "host=db user=u search_path=a"} {
		if _, err := ParseDSN(dsn); err != nil {
			t.Errorf("%s is refused: %v", dsn, err)
		}
	}
}
