package slot

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// connectTimeout bounds one attempt at one address when the connection string
// does not say.
const connectTimeout = 10 * time.Second

// outputForms pins how the server prints values. They are defaults that a role
// or a database may have changed, and the decoder relies on them.
var outputForms = map[string]string{
	"client_encoding":    "UTF8",
	"TimeZone":           "UTC",
	"DateStyle":          "ISO,MDY",
	"IntervalStyle":      "postgres",
	"extra_float_digits": "3",
	"bytea_output":       "hex",
}

// ordinarySettings pin what a role or a database could have changed under an
// ordinary connection. Its statements are short, except for making a slot.
var ordinarySettings = map[string]string{
	"default_transaction_isolation":       "read committed",
	"default_transaction_read_only":       "off",
	"standard_conforming_strings":         "on",
	"statement_timeout":                   "30s",
	"lock_timeout":                        "10s",
	"idle_in_transaction_session_timeout": "60s",
}

// replicationSettings leave no time limit on a connection that lives for months.
var replicationSettings = map[string]string{
	"replication":                   "database",
	"default_transaction_read_only": "off",
	"statement_timeout":             "0",
	"lock_timeout":                  "0",
}

// ConnConfig is the configuration of an ordinary connection.
func (o *Options) ConnConfig() (*pgx.ConnConfig, error) {
	cfg, err := ParseDSN(o.DSN)
	if err != nil {
		return nil, err
	}
	o.pin(&cfg.Config, ordinarySettings)
	// One statement at a time and none of them hot: named statements gain nothing.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	return cfg, nil
}

// trackedByPoolers are the start-up parameters that PgBouncer carries over from
// client to server (its documentation, ignore_startup_parameters). It refuses a
// connection that asks for any other.
var trackedByPoolers = map[string]string{
	"client_encoding":             "UTF8",
	"TimeZone":                    "UTC",
	"DateStyle":                   "ISO,MDY",
	"standard_conforming_strings": "on",
}

// PlainConfig is the configuration of an ordinary connection through a pooler.
func (o *Options) PlainConfig() (*pgx.ConnConfig, error) {
	cfg, err := ParseDSN(o.DSN)
	if err != nil {
		return nil, err
	}
	setParams(&cfg.Config, trackedByPoolers)
	o.dialBy(&cfg.Config)
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	return cfg, nil
}

// ReplicationConfig is the configuration of a replication connection. It comes
// from the same parsed string as the ordinary one, whatever the password holds.
func (o *Options) ReplicationConfig() (*pgconn.Config, error) {
	cfg, err := ParseDSN(o.DSN)
	if err != nil {
		return nil, err
	}
	o.pin(&cfg.Config, replicationSettings)
	return &cfg.Config, nil
}

func (o *Options) pin(cfg *pgconn.Config, settings map[string]string) {
	setParams(cfg, outputForms)
	setParams(cfg, settings)
	o.dialBy(cfg)
}

func setParams(cfg *pgconn.Config, settings map[string]string) {
	for name, value := range settings {
		// The server ignores the case of names; two spellings of one would race.
		maps.DeleteFunc(cfg.RuntimeParams, func(k, _ string) bool { return strings.EqualFold(k, name) })
		cfg.RuntimeParams[name] = value
	}
}

// dialBy sets how the connection is made and what it is called.
func (o *Options) dialBy(cfg *pgconn.Config) {
	if o.ApplicationName != "" {
		cfg.RuntimeParams["application_name"] = o.ApplicationName
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	cfg.DialFunc = newDialer(o.WireTimeout).DialContext
	if o.Dial != nil {
		cfg.DialFunc = o.Dial
	}
}

// Connect opens an ordinary connection. Where the source is polled it is one of
// [ConnectPlain]: there may be nothing but a pooler to connect to. Errors are classified.
func Connect(ctx context.Context, o Options) (*pgx.Conn, error) {
	if o.polls() {
		return ConnectPlain(ctx, o)
	}
	cfg, err := o.ConnConfig()
	if err != nil {
		return nil, err
	}
	return connect(ctx, o, cfg)
}

// ConnectPlain opens an ordinary connection that a pooler in transaction mode may
// stand behind (PgBouncer): it asks for no setting that such a pooler refuses,
// and prepares no statements. What such a connection sets for its session
// may be another's a moment later: settings that matter belong into each
// transaction. Errors are classified.
func ConnectPlain(ctx context.Context, o Options) (*pgx.Conn, error) {
	cfg, err := o.PlainConfig()
	if err != nil {
		return nil, err
	}
	return connect(ctx, o, cfg)
}

func connect(ctx context.Context, o Options, cfg *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, Classify(err, o.scene("connecting"))
	}
	return conn, nil
}

// ConnectReplication opens a replication connection. Errors are classified.
func ConnectReplication(ctx context.Context, o Options) (*pgconn.PgConn, error) {
	cfg, err := o.ReplicationConfig()
	if err != nil {
		return nil, err
	}
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, Classify(err, o.scene("connecting for replication"))
	}
	return conn, nil
}
