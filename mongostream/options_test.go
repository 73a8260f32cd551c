package mongostream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
)

const secret = "s3cr3t-Pa55"

func shop(t testing.TB) Options {
	t.Helper()
	schema, err := event.NewSchema(event.Forze, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Source: "orders", URL: "mongodb://relay:" + secret + "@h1:1,h2:2/?replicaSet=rs0", Database: "shop", Collection: "outbox", Schema: schema}
}

func TestDefaultsAreCompleteAndValid(t *testing.T) {
	t.Parallel()
	o := shop(t).WithDefaults()
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	if o.Marker != "orders" || o.Bookkeeping != "walrelay" || o.SourcesCollection() != "walrelay_sources" || o.AppName != "walrelay/orders" || o.Capture != CaptureStream {
		t.Errorf("defaults %#v", o)
	}
	if again := o.WithDefaults(); again.String() != o.String() || again.LeaseTTL != o.LeaseTTL {
		t.Error("defaults change what is set")
	}
}

func TestWrongOptionsAreUsageErrorsThatNameTheSource(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){
		"no URL":               func(o *Options) { o.URL = "" },
		"no schema":            func(o *Options) { o.Schema = event.Schema{} },
		"database with a dot":  func(o *Options) { o.Database = "a.b" },
		"database local":       func(o *Options) { o.Database = "local" },
		"no collection":        func(o *Options) { o.Collection = "" },
		"system collection":    func(o *Options) { o.Collection = "system.views" },
		"collection with a $":  func(o *Options) { o.Collection = "a$b" },
		"long collection":      func(o *Options) { o.Collection = strings.Repeat("x", 255) },
		"our own collection":   func(o *Options) { o.Collection = "walrelay_parked" },
		"bookkeeping with a $": func(o *Options) { o.Bookkeeping = "$" },
		"extra twice":          func(o *Options) { o.Extra = []string{"a", "a"} },
		"time limit":           func(o *Options) { o.URL = "mongodb://h/?timeoutMS=1" },
		"other product":        func(o *Options) { o.URL = "postgres://h" },
		"extra empty":          func(o *Options) { o.Extra = []string{""} },
		"negative time":        func(o *Options) { o.MaxAwait = -1 },
		"pauses turned around": func(o *Options) { o.ReconnectMin = time.Hour },
		"negative bytes":       func(o *Options) { o.InFlightBytes = -1 },
	} {
		o := shop(t).WithDefaults()
		change(&o)
		err := o.Validate()
		var e *event.Error
		if !as(err, &e) || e.Fault != event.FaultUsage || e.Remedy == "" || e.Anchor != AnchorOptions {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheURLIsNeverPrinted(t *testing.T) {
	t.Parallel()
	o := shop(t).WithDefaults()
	for _, text := range []string{o.String(), fmt.Sprintf("%v %+v %#v", o, o, o), fmt.Sprint(o.Validate())} {
		if strings.Contains(text, secret) {
			t.Errorf("printed: %s", text)
		}
	}
	for _, url := range []string{
		"mongodb//relay:%s@h", "mongodb://relay:%s/x@h", "mongodb://relay:%s@x@h", "mongodb://relay:%s:y@h/?a=b", "postgres://relay:%s@h",
		"mongodb://relay:%s%%@h", "mongodb://relay:%s@h:0", "mongodb://relay:%s@h:port", "mongodb://relay:x@h/?w=%s&j=%s", "mongodb://relay:x@h/?%s",
		"mongodb://relay:x@h/?tls=%s", "mongodb://relay:x@h/%s.db", "mongodb://relay:x@h?%s", "mongodb://relay:%s@", "mongodb://%s", "%s",
		"mongodb://relay:x@h/?tlsCAFile=/nowhere/%s", "mongodb://relay:x@h/?authMechanism=%s", "mongodb://relay:x@h/?timeoutMS=%s",
		"mongodb://relay:%s@h/?authMechanism=MONGODB-X509&authSource=x", "mongodb://relay:x@h/?heartbeatFrequencyMS=%s", "mongodb://h/?tlsCertificateKeyFilePassword=%s",
		"mongodb://relay:%s@h/?timeoutMS=1", "mongodb://relay:%s@h/?loadBalanced=true&replicaSet=r", "mongodb://relay:%s@h1,h2/?directConnection=true",
	} {
		o.URL = strings.ReplaceAll(url, "%s", secret)
		_, err := o.ClientOptions()
		if err == nil {
			continue // it is no mistake to the driver; there is nothing to print
		}
		var e *event.Error
		if !as(err, &e) || e.Fault != event.FaultUsage || e.Remedy == "" || e.Anchor != AnchorOptions {
			t.Errorf("%s: %v", url, err)
		}
		if text := fmt.Sprintf("%v %+v", err, event.ConditionOf(err)); strings.Contains(text, secret) {
			t.Errorf("%s: printed: %s", url, text)
		}
	}
}

func TestNoTimeLimitOverAllOperationsIsTaken(t *testing.T) {
	t.Parallel()
	o := shop(t).WithDefaults()
	for _, query := range []string{"timeoutMS=1000", "replicaSet=rs0&TIMEOUTms=1", "timeout%4dS=5"} {
		o.URL = "mongodb://h/?" + query
		if _, err := o.ClientOptions(); err == nil || !strings.Contains(err.Error(), "timeoutMS") {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestOnlyWhatTheURLLeavesOpenIsSet(t *testing.T) {
	t.Parallel()
	o := shop(t).WithDefaults()
	c, err := o.ClientOptions()
	if err != nil {
		t.Fatal(err)
	}
	if *c.ConnectTimeout != 2*time.Second || *c.HeartbeatInterval != time.Second || *c.AppName != "walrelay/orders" || c.Timeout != nil {
		t.Errorf("connect %v, heartbeat %v, name %q, timeout %v", *c.ConnectTimeout, *c.HeartbeatInterval, *c.AppName, c.Timeout)
	}
	o.URL = "mongodb://h/?connectTimeoutMS=7000&heartbeatFrequencyMS=5000&appName=x&serverSelectionTimeoutMS=3000&w=1&readPreference=secondary&readConcernLevel=local&retryWrites=false"
	if c, err = o.ClientOptions(); err != nil {
		t.Fatal(err)
	}
	if *c.ConnectTimeout != 7*time.Second || *c.HeartbeatInterval != 5*time.Second || *c.AppName != "x" || *c.ServerSelectionTimeout != 3*time.Second {
		t.Error("what the URL says is overridden")
	}
	if c.WriteConcern.W != "majority" || c.ReadPreference.Mode().String() != "primary" || c.ReadConcern.Level != "majority" || !*c.RetryWrites {
		t.Error("the URL weakens reads or writes")
	}
}

// DNS may be away when the relay starts: that passes.
func TestANameThatCannotBeLookedUpIsTriedAgain(t *testing.T) {
	t.Parallel()
	o := shop(t).WithDefaults()
	o.URL = "mongodb+srv://relay:" + secret + "@nowhere.invalid/"
	if err := o.Validate(); err != nil {
		t.Errorf("validating asked somebody: %v", err)
	}
	_, err := o.ClientOptions()
	if event.ClassOf(err) != event.Retry || strings.Contains(err.Error(), secret) {
		t.Errorf("%v", err)
	}
}
