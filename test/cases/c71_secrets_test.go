package cases

// C71 Secrets in logs, metrics, errors
//
// Source: apache/flink-cdc#4174, confluentinc/kafka-connect-jdbc#1196,
// MaterializeInc/materialize#12470, timescale/prometheus-postgresql-adapter#95.
//
// Ideal: no hit for a password or its URL-encoded form in any output: log at
// debug level, errors, metrics, status, configuration, the process's arguments.
//
// There is no option for the passphrase of a key file. A dump of all goroutines
// (SIGQUIT) stands for a panic.

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

const (
	databasePassword = `S3cr3t!%2F@x`
	brokerPassword   = `K4fk4-S3cr3t!%2F@x`
)

// silent fails the test if a text holds a password, in any form: none of them
// changes the letters at its beginning, save base64.
func silent(t testing.TB, what, text string) {
	t.Helper()
	for _, hit := range []string{
		"S3cr3t", "K4fk4",
		base64.StdEncoding.EncodeToString([]byte(databasePassword)), base64.StdEncoding.EncodeToString([]byte("\x00relay\x00" + brokerPassword)),
	} {
		if i := strings.Index(text, hit); i >= 0 {
			t.Errorf("%s holds %q: …%s…", what, hit, text[max(0, i-200):min(len(text), i+100)])
		}
	}
}

// secretHouse is a house whose role and broker user have the passwords. The role
// stays on the shared server, as those of NewRole do.
func secretHouse(t *testing.T, k *kafkaserver.Server) (h *rig.House, role string) {
	t.Helper()
	pg := pgserver.Shared(t, pgserver.V18)
	h = rig.NewHouse(t, pg, k.Brokers(), k.Topic(t, 1, nil))
	role = "secret_" + h.Database
	pg.Exec(t, fmt.Sprintf(`create role %s login superuser password '%s'`, role, databasePassword))
	h.Kafka = fmt.Sprintf("sasl: {mechanism: SCRAM-SHA-256, user: relay, password: %q}", brokerPassword)
	return h, role
}

func secretBroker(t *testing.T) *kafkaserver.Server {
	t.Helper()
	return kafkaserver.Start(t, kafkaserver.Options{Users: map[string]string{"relay": brokerPassword}})
}

func TestC71PasswordsShowNowhere(t *testing.T) {
	t.Parallel()
	k := secretBroker(t)
	for name, dsn := range map[string]func(role, at, database string) string{
		"in the URL's user part": func(role, at, database string) string {
			u := url.URL{Scheme: "postgres", User: url.UserPassword(role, databasePassword), Host: at, Path: database, RawQuery: "sslmode=disable"}
			return u.String()
		},
		"in the URL's query": func(role, at, database string) string {
			return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&password=%s", role, at, database, url.QueryEscape(databasePassword))
		},
		"in keywords": func(role, at, database string) string {
			host, port, _ := strings.Cut(at, ":")
			return fmt.Sprintf("host=%s port=%s user=%s dbname=%s sslmode=disable password='%s'", host, port, role, database, databasePassword)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, role := secretHouse(t, k)
			h.URL = dsn(role, fmt.Sprintf("127.0.0.1:%d", h.PG.Port()), h.Database)
			if name == "in keywords" {
				h.Kafka = fmt.Sprintf("sasl: {mechanism: PLAIN, allow_plaintext: true, user: relay, password: %q}", brokerPassword)
			}
			goodStart(t, h)
		})
	}
}

// goodStart looks at all faces of a relay that works.
func goodStart(t *testing.T, h *rig.House) {
	t.Helper()
	h.Init(t)
	r := h.Start(t, "--log-level", "debug")
	drained(t, h, insertRows(t, h, 1, 10, 0), soon)
	r.WaitReady(soon)
	for _, path := range []string{"/metrics", "/api/status", "/", "/readyz", "/healthz", "/none"} {
		_, body, err := r.Get(path)
		if err != nil {
			t.Error(err)
		}
		silent(t, path, body)
	}
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.PID()))
	if err != nil {
		t.Error(err)
	}
	silent(t, "the process's arguments", string(arguments))
	for _, args := range [][]string{{"config"}, {"check"}, {"init"}, {"init", "--print"}, {"position", "show"}, {"emit", "--route", "orders"}, {"status", "--url", r.URL(), "--json"}} {
		out, code := h.Command(t, args...)
		if code != 0 {
			t.Errorf("walrelay %v exited %d:\n%s", args, code, out)
		}
		silent(t, "walrelay "+args[0], out)
	}
	// The session is lost, found again, and the walsender too.
	h.Exec(t, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	r.WaitReady(soon)
	r.Signal(syscall.SIGQUIT)
	r.Wait(soon)
	contains(t, "the dump", r.Log(), "goroutine 1")
	silent(t, "the log", r.Log())
}

func TestC71PasswordsShowInNoError(t *testing.T) {
	t.Parallel()
	k := secretBroker(t)
	h, role := secretHouse(t, k)
	encoded := url.UserPassword(role, databasePassword).String()
	at := fmt.Sprintf("127.0.0.1:%d/%s", h.PG.Port(), h.Database)
	wrongBroker := fmt.Sprintf("sasl: {mechanism: SCRAM-SHA-256, user: relay, password: %q}", brokerPassword+"-wrong")
	for _, c := range []struct{ name, url, kafka string }{
		{"refused port", "postgres://" + encoded + "@127.0.0.1:1/shop", ""},
		{"port that is no number", "postgres://" + encoded + "@127.0.0.1:54x32/shop", ""},
		{"port out of range", "postgres://" + encoded + "@127.0.0.1:99999/shop", ""},
		{"password as it is", "postgres://" + role + ":" + databasePassword + "@" + at, ""},
		{"broken escape", "postgres://" + role + ":S3cr3t!%zz@x@" + at, ""},
		{"space and line break", "postgres://" + role + ":S3cr3t! \n@x@" + at, ""},
		{"no scheme", encoded + "@" + at, ""},
		{"wrong scheme", "mysql://" + encoded + "@" + at, ""},
		{"unknown parameter", "postgres://" + encoded + "@" + at + "?sslmode=sometimes&password=" + url.QueryEscape(databasePassword), ""},
		{"keywords without a closing quote", "host=127.0.0.1 user=" + role + " password='" + databasePassword, ""},
		{"keywords without a name", "host=127.0.0.1 " + databasePassword, ""},
		{"wrong password", "postgres://" + encoded + "-wrong@" + at + "?sslmode=disable", ""},
		{"no such database", "postgres://" + encoded + "@127.0.0.1:" + fmt.Sprint(h.PG.Port()) + "/none?sslmode=disable", ""},
		{"no TLS there", "postgres://" + encoded + "@" + at + "?sslmode=require", ""},
		{"wrong password at the broker", "postgres://" + encoded + "@" + at + "?sslmode=disable", wrongBroker},
		{"unknown mechanism", "postgres://" + encoded + "@" + at, fmt.Sprintf("sasl: {mechanism: SCRAM, user: relay, password: %q}", brokerPassword)},
		{"password in the wrong place", "postgres://" + encoded + "@" + at, fmt.Sprintf("sasl: {mechanism: PLAIN, user: %q, pasword: %q}", brokerPassword, brokerPassword)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			own := *h
			own.URL = c.url
			if c.kafka != "" {
				own.Kafka = c.kafka
			}
			file := configFile(t, own.Config())
			for _, command := range []string{"config", "check", "init", "position show"} {
				out, _ := walrelay(t, nil, append(strings.Fields(command), "--config", file)...)
				silent(t, "walrelay "+command, out)
			}
			r := own.Start(t, "--log-level", "debug", "--exit-on-halt")
			// What it can do about it shows within a second or two.
			for began := time.Now(); r.Running() && r.URL() != "" && time.Since(began) < 3*time.Second; {
				for _, path := range []string{"/metrics", "/api/status", "/", "/readyz"} {
					if _, body, err := r.Get(path); err == nil {
						silent(t, path, body)
					}
				}
			}
			r.Stop()
			silent(t, "the log", r.Log())
			if len(r.Log()) == 0 {
				t.Error("nothing was logged")
			}
		})
	}
}
