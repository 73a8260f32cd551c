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
	for _, pins := range []map[string]string{outputForms, settings} {
		for name, value := range pins {
			// The server ignores the case of names; two spellings of one would race.
			maps.DeleteFunc(cfg.RuntimeParams, func(k, _ string) bool { return strings.EqualFold(k, name) })
			cfg.RuntimeParams[name] = value
		}
	}
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

// Connect opens an ordinary connection. Errors are classified.
func Connect(ctx context.Context, o Options) (*pgx.Conn, error) {
	cfg, err := o.ConnConfig()
	if err != nil {
		return nil, err
	}
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
