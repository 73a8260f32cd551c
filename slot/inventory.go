package slot

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// inventory is one picture of a server, as far as it concerns a source. It is
// read once and judged by pure functions.
type inventory struct {
	Facts
	settings    map[string]string // as pg_settings has them, in base units
	role        roleInfo
	tables      []tableInfo // in the order of Options.Tables
	publication publicationInfo
	books       map[string]bookInfo // by name
	notifies    bool                // the function for wake-ups is there
	sendersUsed int
	slotsUsed   int
	// unusable says that the server is too old to be asked for the rest.
	unusable bool
}

type roleInfo struct {
	name        string
	replicates  bool // superuser, REPLICATION, or a member of rds_replication
	database    string
	createsHere bool // CREATE on the database
}

// takeInventory reads everything that Check and Plan judge.
func takeInventory(ctx context.Context, conn *pgx.Conn, o Options) (*inventory, error) {
	v := &inventory{settings: map[string]string{}}
	err := v.readServer(ctx, conn, o)
	if err == nil && v.ServerVersion < minVersion {
		v.unusable = true
		return v, nil
	}
	steps := []func(context.Context, *pgx.Conn, Options) error{v.readFactsOf, v.readRole, v.readTables, v.readPublication, v.readBookkeeping}
	if o.polls() { // what only the log needs is not asked for: the role may have no right to it
		steps = []func(context.Context, *pgx.Conn, Options) error{v.readRole, v.readTables, v.readBookkeeping}
	}
	for _, step := range steps {
		if err == nil {
			err = step(ctx, conn, o)
		}
	}
	if err != nil {
		return nil, Classify(err, o.scene("looking at the server"))
	}
	return v, nil
}

func (v *inventory) readServer(ctx context.Context, conn *pgx.Conn, _ Options) error {
	rows, err := conn.Query(ctx, `
		select name, coalesce(setting, '') from pg_catalog.pg_settings
		 where name in ('server_version_num', 'server_version', 'wal_level', 'max_replication_slots', 'max_wal_senders', 'wal_sender_timeout',
		                'max_slot_wal_keep_size', 'logical_decoding_work_mem', 'synchronized_standby_slots')`)
	if err != nil {
		return err
	}
	var name, value string
	if _, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
		v.settings[name] = value
		return nil
	}); err != nil {
		return err
	}
	return conn.QueryRow(ctx, `select pg_catalog.current_setting('server_version_num')::int, pg_catalog.pg_is_in_recovery()`).
		Scan(&v.ServerVersion, &v.InRecovery)
}

func (v *inventory) readFactsOf(ctx context.Context, conn *pgx.Conn, o Options) (err error) {
	v.Facts, err = readFacts(ctx, conn, o.Slot)
	if err != nil {
		return err
	}
	return conn.QueryRow(ctx, `
		select (select count(*) from pg_catalog.pg_stat_get_wal_senders()), (select count(*) from pg_catalog.pg_replication_slots)`).
		Scan(&v.sendersUsed, &v.slotsUsed)
}

func (v *inventory) readRole(ctx context.Context, conn *pgx.Conn, _ Options) error {
	return conn.QueryRow(ctx, `
		select r.rolname::text, pg_catalog.current_database()::text,
		       r.rolsuper or r.rolreplication or exists (
		           select from pg_catalog.pg_roles m
		            where m.rolname in ('rds_replication') and pg_catalog.pg_has_role(r.oid, m.oid, 'USAGE')),
		       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
		  from pg_catalog.pg_roles r where r.rolname = current_user`).
		Scan(&v.role.name, &v.role.database, &v.role.replicates, &v.role.createsHere)
}

func (v *inventory) readTables(ctx context.Context, conn *pgx.Conn, o Options) error {
	for _, t := range o.Tables {
		info, err := readTable(ctx, conn, t)
		if err != nil {
			return err
		}
		v.tables = append(v.tables, info)
		v.LeafTables = append(v.LeafTables, info.leaves...)
	}
	return nil
}

func (v *inventory) readPublication(ctx context.Context, conn *pgx.Conn, o Options) (err error) {
	v.publication, err = readPublication(ctx, conn, o.Publication)
	return err
}
