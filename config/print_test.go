package config

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// everything gives each option a value that is not its default.
const everything = `name: shop
grace: 45s
http: {listen: ":9000"}
log: {level: debug, format: json}
kafka:
  brokers: [a:9092, "[::1]:9092"]
  client_id: "true"
  linger: 0s
  compression: lz4
  batch_max_bytes: 2MB
  in_flight_records: 1000
  in_flight_bytes: 5MiB
  request_timeout: 3s
  create_topics: true
  partitions: 12
  replication: 3
  on_poison: dlq
  dlq_topic: dead
  tls: {enable: true, ca_file: "/a b/ca.pem", cert_file: c.pem, key_file: k.pem, server_name: "#x"}
  sasl: {mechanism: SCRAM-SHA-512, user: "null", password: 12345, allow_plaintext: true}
routes:
  "orders.*": {topic: "o-{tenant}", key_fallback: none, null_payload: tombstone, envelope: cloudevents, timestamp: occurred_at, partition: spread, encryption: none}
  paid: {topic: paid, pin_partitions: 6, hold_back: false}
  "*": {topic: "$${route}"}
  stamped: {topic: stamped, order: hlc, within_key: commit}
order: {transaction: 3s, staged: 1ms, clock_error: 0s, max_drift: 1m, buffer_bytes: 2MiB, every: 1s, late: halt, late_header: true, on_source_stall: block, stall_after: 9s}
sources:
  orders:
    postgres:
      url: "postgres://relay:pw12345@localhost:5432/shop?sslmode=disable"
      role: relay
      tables: ['"Sales-EU"."Outbox.Order"', public.outbox]
      messages: {prefixes: [outbox, "a: b", "${UMLAUT}"], allow_nontransactional: true}
      slot: my_slot
      publication: "My Pub"
      failover: false
      producers: [app]
      allow_row_filter: true
      bookkeeping: none
      status_interval: 1s
      max_event_bytes: 1MiB
      in_flight_bytes: 3000001
      wire_timeout: 1m30s
      reconnect_max: 1h
      check_interval: 250ms
    schema: {preset: forze, columns: {event_id: "evt ID", key: k}}
    headers: {x-region: region, "b:": b, a: a}
    position_header: true
    after_publish: keep
    parked_budget: 7
    sweep_every: 2s
  second:
    postgres: {url: "host=db password='it\\'s' dbname=shop", messages: [outbox]}
    schema: {preset: debezium, columns: {tenant_id: tenant}}
  polled:
    postgres: {url: "host=db2 dbname=shop", tables: [outbox], capture: poll, on_gap: catch_up}
    after_publish: mark
    poll:
      claim: lease
      batch: 321
      interval: 10ms
      shards: 3
      lease: 4s
      reclaim_after: 5s
      attempts: 2
      backoff_min: 2s
      backoff_max: 3s
      notify: true
    retention: {keep_published: 24h, batch: 55, every: 7m}
  catalog:
    mongo:
      url: "mongodb://relay:pw12345@a:1,b:2/?replicaSet=rs0&appName=x"
      database: shop
      collection: events
      capture: auto
      bookkeeping: relay
      on_gap: catch_up
      on_drop: continue
      payload: relaxed
      legacy_uuid: java
      missing_hlc: last
      batch_size: 77
      max_await: 2s
      checkpoint_every: 3s
      lease: 8s
      max_event_bytes: 2MiB
      in_flight_bytes: 4MiB
      wire_timeout: 4s
      reconnect_max: 9s
      check_interval: 11s
`

func TestPrintedConfigurationLoadsAsTheSame(t *testing.T) {
	t.Parallel()
	// A topic with ${route} is refused; here it only tests the escape.
	text := strings.Replace(everything, `"$${route}"`, `"x{route}"`, 1)
	oauth := strings.Replace(text, `mechanism: SCRAM-SHA-512, user: "null", password: 12345`,
		`mechanism: OAUTHBEARER, endpoint: {url: "https://login/token", client_id: me, client_secret: pw, scope: all}`, 1)
	file := strings.Replace(text, `mechanism: SCRAM-SHA-512, user: "null", password: 12345`, "mechanism: OAUTHBEARER, token_file: /run/token", 1)
	for _, one := range []string{minimal, text, oauth, file} {
		first := mustLoad(t, world{env: map[string]string{"UMLAUT": "ü\t${X}\"\\ \u2028<&>"}}, one)
		out := printed(t, first)
		second := mustLoad(t, world{}, out)
		if again := printed(t, second); again != out {
			t.Errorf("printed again, it differs:\n%s\n%s", out, again)
		}
		forget(first)
		forget(second)
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%s\n%+v\n%+v", out, first, second)
		}
	}
}

// forget drops what cannot survive printing: places, and secrets.
func forget(c *Config) {
	c.origins, c.hidden = nil, nil
	c.Kafka.SASL.Password, c.Kafka.SASL.Endpoint.ClientSecret = Secret{}, Secret{}
	for i := range c.Sources {
		c.Sources[i].Value.Postgres.URL, c.Sources[i].Value.Mongo.URL = DSN{}, MongoURL{}
	}
}

func TestEverythingGivesEachOptionAnotherValueThanItsDefault(t *testing.T) {
	t.Parallel()
	for _, o := range Options() {
		key := o.Path[strings.LastIndex(o.Path, ".")+1:]
		if o.section() || strings.HasPrefix(key, "<") {
			continue
		}
		if !strings.Contains(everything, key+":") && o.Path != "sources.<source>.postgres.messages_allow_nontransactional" &&
			!strings.HasPrefix(o.Path, "kafka.sasl.token") && !strings.HasPrefix(o.Path, "kafka.sasl.endpoint.") {
			t.Errorf("%s is not in the test's configuration", o.Path)
		}
	}
}

func TestExampleLoads(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../walrelay.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := world{
		env:   map[string]string{"DATABASE_URL": "postgres://relay@localhost:5432/shop"},
		files: map[string]string{"/run/secrets/kafka-password": "pw\n"},
	}
	c, warnings, err := w.load(string(data))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v", err, warnings)
	}
	for _, o := range Options() {
		if key := o.Path[strings.LastIndex(o.Path, ".")+1:]; !strings.HasPrefix(key, "<") && !strings.Contains(string(data), key+":") {
			t.Errorf("%s is not in the example", o.Path)
		}
	}
	if c.Name != "shop" {
		t.Errorf("%+v", c)
	}
}
