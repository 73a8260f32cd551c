package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/mongostream/bsonjson"
	"github.com/walrelay/walrelay/slot"
)

const mongoOnly = `name: shop
kafka: {brokers: [localhost:9092]}
sources:
  catalog:
    mongo: {url: "mongodb://relay:s3cret@db1:1,db2:2/?replicaSet=rs0&authSource=admin&tlsCertificateKeyFilePassword=deep", database: shop}
`

func TestMongoSourceNeedsNothingOfPostgres(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, world{}, mongoOnly)
	o, err := c.MongoOptions("catalog")
	if err != nil {
		t.Fatal(err)
	}
	if o.Collection != "outbox" || o.Marker != "shop/catalog" || o.WriteBack != mongostream.MarkRows || o.Capture != mongostream.CaptureStream ||
		o.BatchSize != 1000 || o.Format.Format != bsonjson.Plain {
		t.Errorf("%+v", o)
	}
	if c.Sources[0].Value.Poll.Claim != "row" || c.Capture("catalog") != slot.CaptureLog || !c.IsMongo("catalog") {
		t.Errorf("claim %q, capture %q", c.Sources[0].Value.Poll.Claim, c.Capture("catalog"))
	}
	if out := printed(t, c); strings.Contains(out, "postgres") {
		t.Errorf("the effective configuration speaks of Postgres:\n%s", out)
	}
}

func TestMongoURLNeverPrintsItsSecrets(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, world{}, mongoOnly)
	u := c.Sources[0].Value.Mongo.URL
	text, _ := u.MarshalText()
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s %d", u, u, u, u, u), fmt.Sprintf("%+v", c.Sources), string(text), printed(t, c)} {
		if strings.Contains(shown, "s3cret") || strings.Contains(shown, "deep") {
			t.Errorf("a secret shows:\n%s", shown)
		}
	}
	if want := "mongodb://relay:***@db1:1,db2:2/?replicaSet=rs0&authSource=admin&***=***"; u.String() != want {
		t.Errorf("shown as %s, want %s", u, want)
	}
	for _, odd := range []string{"mongodb://a:pw@b@c/", "postgres://a:pw@b/c", "mongodb://u:p%zz@h/?x", "mongodb://u:secretword@h/?appName=secretword"} {
		u := MongoURL{odd}
		err := u.Check()
		for _, secret := range []string{"pw@", "p%zz", "secretword"} {
			if strings.Contains(u.String(), secret) || err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s: shown as %s, error %v", odd, u, err)
			}
		}
	}
}

func TestMongoSourceIsRefusedForWhatItCannotBe(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"database: shop, bookkeeping: none":    "a change stream has no slot",
		"database: shop, capture: log":         "want stream, poll, auto",
		"database: shop, lease: 1s":            "is too short",
		"database: local":                      "never replicated",
		"collection: x":                        "is missing: it has no default",
		"database: shop, collection: a$b":      "holds a $",
		"database: shop, max_event_bytes: 1GB": "one event could never be read",
	} {
		text := strings.Replace(mongoOnly, "database: shop", change, 1)
		if found := problemsOf(t, world{}, text); !strings.Contains(fmt.Sprint(found), want) {
			t.Errorf("%s: %v, want %q", change, found, want)
		}
	}
	text := strings.Replace(mongoOnly, "authSource=admin", "timeoutMS=100", 1)
	if found := problemsOf(t, world{}, text); !strings.Contains(fmt.Sprint(found), "timeoutMS") {
		t.Errorf("timeoutMS: %v", found)
	}
}
