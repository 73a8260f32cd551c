package publish

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/walrelay/walrelay/event"
)

func TestValidateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := Options{Brokers: []string{"localhost:9092"}}
	if err := good.Validate(); err != nil {
		t.Errorf("the least options: %v", err)
	}
	for want, change := range map[string]func(*Options){
		"no brokers":                      func(o *Options) { o.Brokers = nil },
		"compression \"lzma\" is unknown": func(o *Options) { o.Compression = "lzma" },
		"has no topic":                    func(o *Options) { o.OnPoison = PoisonDLQ },
		"poison policy \"skip\"":          func(o *Options) { o.OnPoison = "skip" },
		"park has no place":               func(o *Options) { o.OnPoison = PoisonPark },
		"is no legal topic name":          func(o *Options) { o.OnPoison, o.DLQTopic = PoisonDLQ, "a b" },
		"pinned to 0 partitions":          func(o *Options) { o.PinPartitions = map[string]int{"a": 0} },
		"only one of tls.cert_file":       func(o *Options) { o.TLS = TLS{Enable: true, CertFile: "x"} },
		"tls is not enabled":              func(o *Options) { o.TLS = TLS{CAFile: "x"} },
		"no mechanism":                    func(o *Options) { o.SASL.User = "x" },
		"mechanism \"GSSAPI\" is unknown": func(o *Options) { o.SASL.Mechanism = "GSSAPI" },
		"needs a user and a password":     func(o *Options) { o.SASL.Mechanism = "SCRAM-SHA-256" },
		"sends the secret in the clear":   func(o *Options) { o.SASL = SASL{Mechanism: "PLAIN", User: "u", Password: "p"} },
		"0 sources of its token":          func(o *Options) { o.SASL = SASL{Mechanism: "OAUTHBEARER"} },
		"linger is 2m0s":                  func(o *Options) { o.Linger = 2 * time.Minute },
		"in-flight bounds are -1 records": func(o *Options) { o.MaxInFlightRecords = -1 },
		"batch_max_bytes is 10":           func(o *Options) { o.BatchMaxBytes = 10 },
		"token endpoint needs a client id": func(o *Options) {
			o.TLS.Enable = true
			o.SASL = SASL{Mechanism: "OAUTHBEARER", Endpoint: TokenEndpoint{URL: "https://h/t"}}
		},
	} {
		o := good
		change(&o)
		err := o.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || event.ClassOf(err) != event.Halt {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	s := SASL{Mechanism: "PLAIN", User: "u", Password: "hidden", Token: "hidden", Endpoint: TokenEndpoint{URL: "u", ClientSecret: "hidden"}}
	for _, form := range []string{"%v", "%+v", "%#v", "%s"} {
		if out := fmt.Sprintf(form, s) + fmt.Sprintf(form, s.Endpoint) + fmt.Sprintf(form, Options{SASL: s}); strings.Contains(out, "hidden") {
			t.Errorf("%s prints %s", form, out)
		}
	}
}

func TestTokensComeFromFileAndEndpoint(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	fromFile := tokenSource(SASL{TokenFile: file}, time.Second)
	for _, want := range []string{"one", "two"} {
		if err := os.WriteFile(file, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := fromFile(context.Background()); got != want || err != nil {
			t.Errorf("token %q, %v; want %q", got, err, want)
		}
	}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked++
		user, secret, _ := req.BasicAuth()
		if user != "id" || secret != "s%26t" || req.FormValue("grant_type") != "client_credentials" || req.FormValue("scope") != "kafka" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"access_token":"three","expires_in":3600}`)
	}))
	defer server.Close()
	endpoint := TokenEndpoint{URL: server.URL, ClientID: "id", ClientSecret: "s&t", Scope: "kafka"}
	fromEndpoint := tokenSource(SASL{Endpoint: endpoint}, time.Second)
	for range 3 {
		if got, err := fromEndpoint(context.Background()); got != "three" || err != nil {
			t.Errorf("token %q, %v", got, err)
		}
	}
	if asked != 1 {
		t.Errorf("the endpoint was asked %d times, want 1", asked)
	}
	endpoint.ClientSecret = "wrong"
	if _, err := tokenSource(SASL{Endpoint: endpoint}, time.Second)(context.Background()); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a refusal says %v", err)
	}
}

func TestWrongPasswordHaltsAtStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "alice", "right"))
		r.opts.SASL = SASL{Mechanism: "SCRAM-SHA-256", User: "alice", Password: "wrong"}
		// kfake hangs up where a broker answers.
		refused := r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.SASLAuthenticate}, TopLevel: true, Err: kerr.SaslAuthenticationFailed, Count: -1})
		pub, err := Open(context.Background(), r.opts, r.obs)
		if err == nil {
			_ = pub.Close(context.Background())
		}
		if event.ClassOf(err) != event.Halt || err == nil || !strings.Contains(err.Error(), "User:alice") || strings.Contains(err.Error(), "wrong") {
			t.Errorf("Open: %v; conditions %v", err, r.everSet)
		}
		refused.Remove()
		r.opts.SASL.Password = "right"
		r.open()
		r.close(0)
	})
}

func TestUnreachableBrokerIsAConditionUntilItIsThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(1, "a"))
		r.cluster.Close()
		r.open()
		r.publish(record("a", "k", 0), 0)
		pass(time.Minute)
		r.mu.Lock()
		if c := r.conditions["kafka"]; c.Anchor != AnchorUnreachable {
			t.Errorf("conditions are %v", r.conditions)
		}
		r.mu.Unlock()
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(r.network.Listen), kfake.SeedTopics(1, "a"))
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		r.wait("decided", r.decided(1))
		if len(r.conditions) != 0 {
			t.Errorf("conditions that stay: %v", r.conditions)
		}
		r.close(1)
	})
}

func TestCheckNamesEachPrecondition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, kfake.SeedTopics(3, "a", "secret"))
		r.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "secret", Err: kerr.TopicAuthorizationFailed, Count: -1})
		r.opts.OnPoison, r.opts.DLQTopic = PoisonDLQ, "dlq"
		findings := Check(context.Background(), r.opts, []string{"a", "missing", "secret", "no topic"})
		is := map[string]event.Finding{}
		for _, f := range findings {
			is[f.Setting] = f
			if !f.OK && f.Remedy == "" {
				t.Errorf("no remedy: %+v", f)
			}
		}
		for setting, ok := range map[string]bool{
			"kafka brokers": true, "kafka idempotent producer": true, "topic a": true, "topic a max.message.bytes": true,
			"topic a replication factor": true, "topic missing": false, "topic secret": false, "topic no topic": false, "topic dlq": false,
		} {
			if f, found := is[setting]; !found || f.OK != ok {
				t.Errorf("%s: %+v, want OK %v", setting, f, ok)
			}
		}
		if f := is["topic a replication factor"]; !f.Warning || f.Remedy == "" {
			t.Errorf("%+v, want a warning with a remedy", f)
		}
	})
}
