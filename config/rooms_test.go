package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/outbox/postgres"
	"github.com/walrelay/walrelay/publish"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/router"
	"github.com/walrelay/walrelay/slot"
)

// whole is the configuration with every option given.
func whole(t *testing.T) *Config {
	t.Helper()
	return mustLoad(t, world{env: map[string]string{"UMLAUT": "ü"}}, strings.Replace(everything, `"$${route}"`, `"x{route}"`, 1))
}

func TestEachRoomGetsItsOptions(t *testing.T) {
	t.Parallel()
	c := whole(t)
	schema, err := event.NewSchema(event.Forze, map[event.Field]string{event.EventID: "evt ID", event.Key: "k"})
	if err != nil {
		t.Fatal(err)
	}

	gotSlot, err := c.SlotOptions("orders")
	wantSlot := slot.Options{
		Source: "orders", Marker: c.Name + "/orders", DSN: "postgres://relay:pw12345@localhost:5432/shop?sslmode=disable", Slot: "my_slot", Publication: "My Pub", Role: "relay",
		Tables:   []slot.Table{{Schema: "Sales-EU", Name: "Outbox.Order"}, {Schema: "public", Name: "outbox"}},
		Messages: []string{"outbox", "a: b", "ü"}, AllowNonTransactional: true, Schema: schema, ExtraColumns: []string{"region", "b", "a"},
		ClaimRows: true, AllowRowFilter: true, Bookkeeping: slot.NoBookkeeping, StatusInterval: time.Second, CheckInterval: 250 * time.Millisecond,
		WireTimeout: 90 * time.Second, ReconnectMax: time.Hour, MaxEventBytes: 1 << 20, InFlightBytes: 3000001,
		Ordered: true, Producers: []string{"app"},
	}
	if wantSlot = wantSlot.WithDefaults(); err != nil || !reflect.DeepEqual(gotSlot, wantSlot) {
		t.Errorf("slot: %v\n%#v\n%#v", err, gotSlot, wantSlot)
	}

	polled, err := event.NewSchema(event.Forze, nil)
	if err != nil {
		t.Fatal(err)
	}
	gotOutbox, err := c.OutboxOptions("polled")
	wantOutbox := outbox.Options{
		Source: "polled", Batch: 321, InFlight: 4 * 321, Interval: 10 * time.Millisecond, Shards: 3, LeaseTTL: 4 * time.Second,
		ReclaimAfter: 5 * time.Second, Attempts: 2, BackoffMin: 2 * time.Second, BackoffMax: 3 * time.Second, Loose: []string{"paid"},
		SweepEvery: 5 * time.Second, KeepPublished: 24 * time.Hour, RetainBatch: 55, RetainEvery: 7 * time.Minute,
	}
	if wantOutbox = wantOutbox.WithDefaults(); err != nil || !reflect.DeepEqual(gotOutbox, wantOutbox) {
		t.Errorf("outbox: %v\n%+v\n%+v", err, gotOutbox, wantOutbox)
	}
	gotTable, err := c.TableOptions("polled")
	wantTable := postgres.Options{
		Source: "polled", Owner: c.Name + "/polled", Tables: []postgres.Name{{Schema: "public", Name: "outbox"}}, Schema: polled,
		AfterPublish: postgres.MarkIt, Claim: postgres.ClaimLease, Bookkeeping: "walrelay", ParkedBudget: 10000,
	}
	if err != nil || !reflect.DeepEqual(gotTable, wantTable) {
		t.Errorf("table: %v\n%+v\n%+v", err, gotTable, wantTable)
	}
	gotTable, err = c.TableOptions("orders")
	if err != nil || gotTable.Bookkeeping != "" || gotTable.ParkedBudget != 7 || gotTable.AfterPublish != postgres.Keep ||
		!reflect.DeepEqual(gotTable.ExtraColumns, []string{"region", "b", "a"}) || len(gotTable.Tables) != 2 {
		t.Errorf("table: %v\n%+v", err, gotTable)
	}
	if c.Capture("polled") != slot.CapturePoll || c.OnGap("polled") != slot.GapCatchUp || c.Capture("orders") != slot.CaptureLog || c.OnGap("orders") != slot.GapStop {
		t.Errorf("capture %s %s, on_gap %s %s", c.Capture("polled"), c.Capture("orders"), c.OnGap("polled"), c.OnGap("orders"))
	}

	gotRouter, err := c.RouterOptions("orders")
	wantRouter := router.Options{
		Source: "orders", Schema: schema, Position: true, Headers: []router.Header{{Name: "x-region", Column: "region"}, {Name: "b:", Column: "b"}, {Name: "a", Column: "a"}},
		Routes: []router.Route{
			{
				Match: "orders.*", Topic: "o-{tenant}", KeyFallback: router.FallbackNone, NullPayload: router.NullTombstone,
				Envelope: router.EnvelopeCloudEvents, Timestamp: router.TimestampOccurredAt, Partition: router.PartitionSpread, Encryption: router.EncryptionNone,
			},
			{
				Match: "paid", Topic: "paid", KeyFallback: router.FallbackEventID, NullPayload: router.NullPoison,
				Envelope: router.EnvelopeNone, Timestamp: router.TimestampCommit, Partition: router.PartitionKey, Encryption: router.EncryptionForward, Loose: true,
			},
			{
				Match: "*", Topic: "x{route}", KeyFallback: router.FallbackEventID, NullPayload: router.NullPoison,
				Envelope: router.EnvelopeNone, Timestamp: router.TimestampCommit, Partition: router.PartitionKey, Encryption: router.EncryptionForward,
			},
			{
				Match: "stamped", Topic: "stamped", KeyFallback: router.FallbackEventID, NullPayload: router.NullPoison,
				Envelope: router.EnvelopeNone, Timestamp: router.TimestampCommit, Partition: router.PartitionKey, Encryption: router.EncryptionForward,
				Order: event.ByStampWithinCommit,
			},
		},
	}
	if err != nil || !reflect.DeepEqual(gotRouter, wantRouter) {
		t.Errorf("router: %v\n%+v\n%+v", err, gotRouter, wantRouter)
	}

	gotPublish := c.PublishOptions()
	wantPublish := publish.Options{
		Brokers: []string{"a:9092", "[::1]:9092"}, ClientID: "true", Compression: "lz4", MaxInFlightRecords: 1000, MaxInFlightBytes: 5 << 20,
		BatchMaxBytes: 2e6, CreateTopics: true, Partitions: 12, Replication: 3, OnPoison: publish.PoisonDLQ, DLQTopic: "dead",
		TLS:           publish.TLS{Enable: true, CAFile: "/a b/ca.pem", CertFile: "c.pem", KeyFile: "k.pem", ServerName: "#x"},
		SASL:          publish.SASL{Mechanism: "SCRAM-SHA-512", User: "null", Password: "12345", AllowPlaintext: true},
		PinPartitions: map[string]int{"paid": 6}, RequestTimeout: 3 * time.Second,
	}
	if !reflect.DeepEqual(gotPublish, wantPublish) {
		t.Errorf("publish:\n%+v\n%+v", gotPublish, wantPublish)
	}

	wantOrder := &relay.Ordering{
		Transaction: 3 * time.Second, Staged: time.Millisecond, MaxDrift: time.Minute, BufferBytes: 2 << 20, Every: time.Second,
		HaltOnLate: true, LateHeader: true,
	}
	if got := c.OrderOptions(); !reflect.DeepEqual(got, wantOrder) {
		t.Errorf("order: %+v, want %+v", got, wantOrder)
	}

	_, slotErr := c.SlotOptions("nowhere")
	_, outboxErr := c.OutboxOptions("nowhere")
	_, tableErr := c.TableOptions("nowhere")
	for _, err := range []error{outboxErr, tableErr} {
		if event.ClassOf(err) != event.Halt || err == nil {
			t.Errorf("a source that is not there: %v", err)
		}
	}
	if err := slotErr; err == nil || event.ClassOf(err) != event.Halt {
		t.Errorf("a source that is not there: %v", err)
	}
}

func TestDefaultsAreTheRoomsOwn(t *testing.T) {
	t.Parallel()
	c := mustLoad(t, world{}, minimal)
	if c.Kafka.Linger != publish.DefaultLinger {
		t.Errorf("linger %v, the room's is %v", c.Kafka.Linger, publish.DefaultLinger)
	}
	o, err := c.SlotOptions("orders")
	if err != nil {
		t.Fatal(err)
	}
	if !o.Failover || o.AllowRowFilter || o.AllowNonTransactional || o.Bookkeeping != "walrelay" {
		t.Errorf("not the safe defaults: %+v", o)
	}
	table, err := c.OutboxOptions("orders")
	if err != nil || !reflect.DeepEqual(table, outbox.Options{Source: "orders"}.WithDefaults()) {
		t.Errorf("%v: not the defaults of the table reader: %+v", err, table)
	}
	room := slot.Options{Source: "orders"}.WithDefaults()
	if o.StatusInterval != room.StatusInterval || o.CheckInterval != room.CheckInterval || o.WireTimeout != room.WireTimeout ||
		o.InFlightBytes != room.InFlightBytes {
		t.Errorf("%+v\n%+v", o, room)
	}
}

func TestWhatARoomRefusesIsRefusedAtItsPlace(t *testing.T) {
	t.Parallel()
	for text, at := range map[string]struct {
		path, why string
		line      int
	}{
		`routes: {"*": {topic: "{rout}"}}`:                                             {`routes.*`, "rout", 9},
		"routes:\n  a.b.*: {topic: t}\n  \"a*\": {topic: t}":                           {`routes.a*`, "*", 11},
		"routes: {a: {topic: 'x y'}}":                                                  {"routes.a", "topic", 9},
		"  sasl: {mechanism: PLAIN, user: u, password: p}":                             {"kafka", "allow_plaintext", 7},
		"  batch_max_bytes: 10GiB":                                                     {"kafka", "batch_max_bytes", 7},
		"  on_poison: dlq\n  dlq_topic: a b":                                           {"kafka", "legal", 7},
		"  tls: {ca_file: x}":                                                          {"kafka", "kafka.tls.enable", 7},
		"  tls: {enable: true, cert_file: x}":                                          {"kafka", "both or none", 7},
		"  sasl: {mechanism: OAUTHBEARER, user: u, token: t}":                          {"kafka.sasl", "no user", 9},
		"  sasl: {mechanism: SCRAM-SHA-256, user: u, token: t}":                        {"kafka.sasl.password", "missing", 9},
		"  on_poison: dlq":                                                             {"kafka.dlq_topic", "missing", 7},
		"  dlq_topic: a":                                                               {"kafka.dlq_topic", "no effect", 9},
		"  partitions: 3":                                                              {"kafka", "create_topics", 7},
		"  tls: {enable: true, insecure_skip_verify: true}":                            {"kafka.tls.insecure_skip_verify", "ca_file", 9},
		"routes: {a: {pin_partitions: 3}}":                                             {"routes.a.pin_partitions", "without variables", 9},
		"routes: {a: {topic: t, pin_partitions: 3}, b: {topic: t, pin_partitions: 4}}": {"routes.b.pin_partitions", "same topic", 9},
	} {
		wantProblem(t, problemsOf(t, world{}, minimal+text+"\n"), at.path, at.line, at.why)
	}
	headers := strings.Replace(minimal, "    postgres:", "    headers: {x: col, forze_type: col}\n    postgres:", 1)
	wantProblem(t, problemsOf(t, world{}, headers), "sources.orders.headers.forze_type", 4, "walrelay itself")
	fields := strings.Replace(minimal, "    postgres:", "    schema: {columns: {tpye: t, key: "+strings.Repeat("k", 64)+"}}\n    postgres:", 1)
	found := problemsOf(t, world{}, fields)
	wantProblem(t, found, "sources.orders.schema.columns.tpye", 4, "did you mean type?")
	wantProblem(t, found, "sources.orders.schema.columns.key", 4, "Postgres keeps 63")
}
