package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/walrelay/walrelay/outbox"
)

// Leases are rows of walrelay's own schema, by the server's clock:
//
//	owner   unit             holder   acquired_at   expires_at
//	orders  shard/16/3       a        …             …             part 3 of 16
//	orders  member/a         a        …             …             a lives, and has a share
//
// A part is named with the number of parts, because those of another number are
// other parts: nothing is taken while somebody holds one of another cut.
type Leases struct {
	db    *Database
	owner string
	table string
}

// Leases of the source; it needs bookkeeping.
func (d *Database) Leases() *Leases {
	return &Leases{db: d, owner: d.o.Owner, table: Name{d.o.Bookkeeping, "lease"}.SQL()}
}

const (
	unitShard  = "shard/"
	unitMember = "member/"
)

// shardPrefix begins the names of the parts of a cut into that many.
func shardPrefix(of int) string { return unitShard + strconv.Itoa(of) + "/" }

// sql fills in the table. Every statement's first two parameters are owner and holder.
func (l *Leases) sql(s string) string { return strings.ReplaceAll(s, "{lease}", l.table) }

// Renew is one transaction in one round trip. Members of a source take turns: an
// advisory lock of the transaction, which a pooler does not disturb.
func (l *Leases) Renew(ctx context.Context, holder string, ttl time.Duration, req outbox.LeaseRequest) (outbox.LeaseState, error) {
	var state outbox.LeaseState
	back := make([]string, len(req.GiveBack))
	for i, n := range req.GiveBack {
		back[i] = shardPrefix(req.Of) + strconv.Itoa(n)
	}
	prefix := text(shardPrefix(req.Of))
	who := [][]byte{text(l.owner), text(holder)}
	with := func(more ...[]byte) [][]byte { return append(slices.Clone(who), more...) }
	units, from, until := make([]string, len(req.Reclaimed)), make([]string, len(req.Reclaimed)), make([]string, len(req.Reclaimed))
	for i, t := range req.Reclaimed {
		units[i], from[i], until[i] = shardPrefix(req.Of)+strconv.Itoa(t.Shard), t.From, t.Until
	}
	err := l.db.transact(ctx, "renewing the leases of source "+l.db.o.Source,
		statement{
			args: who[:1],
			sql:  "SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('walrelay lease ' || $1::pg_catalog.text, 0))",
		},
		statement{
			args: with(array(back), prefix),
			sql: l.sql(`DELETE FROM {lease} l WHERE owner = $1::pg_catalog.text AND CASE
 WHEN holder = $2::pg_catalog.text AND unit = ANY ($3::pg_catalog.text[]) THEN ` + claimsOver + `
 WHEN expires_at > pg_catalog.clock_timestamp() OR pg_catalog.starts_with(unit, $4::pg_catalog.text) THEN FALSE
 WHEN pg_catalog.starts_with(unit, 'shard/') THEN ` + claimsOver + ` ELSE TRUE END`),
		},
		statement{
			args: with(array(units), array(from), array(until)),
			sql: l.sql(`UPDATE {lease} l SET acquired_at = x.until
  FROM ROWS FROM (pg_catalog.unnest($3::pg_catalog.text[]), pg_catalog.unnest($4::pg_catalog.timestamptz[]), pg_catalog.unnest($5::pg_catalog.timestamptz[])) x (unit, since, until)
 WHERE l.owner = $1::pg_catalog.text AND l.holder = $2::pg_catalog.text AND l.unit = x.unit AND l.acquired_at = x.since`),
		},
		statement{
			args: with(prefix, interval(ttl)),
			sql: l.sql(`UPDATE {lease} SET expires_at = pg_catalog.clock_timestamp() + $4::pg_catalog.interval
 WHERE owner = $1::pg_catalog.text AND holder = $2::pg_catalog.text AND pg_catalog.starts_with(unit, $3::pg_catalog.text)`),
		},
		statement{
			args: with(prefix, interval(ttl), number(req.Of), number(req.Want), array(back), boolean(req.All)),
			sql:  l.sql(take),
			row: func(v [][]byte) error {
				if v[1] == nil {
					return nil
				}
				shard, err := strconv.Atoi(string(v[0]))
				state.Tenures = append(state.Tenures, outbox.Tenure{Shard: shard, From: string(v[1]), Until: string(v[2])})
				return err
			},
		},
		statement{
			args: with(prefix, interval(ttl), boolean(req.All)),
			sql:  l.sql(join),
		},
		statement{
			args: who[:1],
			sql:  l.sql(`SELECT unit, holder FROM {lease} WHERE owner = $1::pg_catalog.text AND expires_at > pg_catalog.clock_timestamp() ORDER BY unit, holder`),
			row: func(v [][]byte) error {
				return enter(&state, string(v[0]), string(v[1]), holder, req.Of)
			},
		},
	)
	if err != nil {
		return outbox.LeaseState{}, err
	}
	slices.Sort(state.Own)
	return state, nil
}

// claimsOver is that no claim of the holder of lease l is in the middle. Nobody waits here
// for a claim: a part that cannot be taken, or given back, now is so later.
const claimsOver = "pg_catalog.pg_try_advisory_xact_lock(" + claimKey + "l.holder, 0))"

// take gives the holder free and expired parts, lowest first. The tenure of a part
// that expired is what its row said until now, and the longest time that a claim which began
// at its end may have gone on. The new holder's own begins with it, see LeaseRequest.Reclaimed.
const take = `WITH had AS MATERIALIZED (
 SELECT unit FROM {lease} WHERE owner = $1::pg_catalog.text AND holder = $2::pg_catalog.text AND pg_catalog.starts_with(unit, $3::pg_catalog.text)),
 free AS MATERIALIZED (
 SELECT n, $3::pg_catalog.text || n AS unit, l.acquired_at AS since,
        LEAST(l.expires_at + interval '` + statementTimeout + `', pg_catalog.clock_timestamp()) AS until
   FROM pg_catalog.generate_series(0, $5::pg_catalog.int4 - 1) n
   LEFT JOIN {lease} l ON l.owner = $1::pg_catalog.text AND l.unit = $3::pg_catalog.text || n
  WHERE CASE WHEN l.unit IS NULL THEN TRUE
             WHEN l.expires_at <= pg_catalog.clock_timestamp() AND l.holder <> $2::pg_catalog.text THEN ` + claimsOver + `
             ELSE FALSE END
    AND $3::pg_catalog.text || n <> ALL ($7::pg_catalog.text[])
    AND NOT EXISTS (SELECT FROM {lease} x WHERE x.owner = $1::pg_catalog.text AND pg_catalog.starts_with(x.unit, 'shard/')
                     AND NOT pg_catalog.starts_with(x.unit, $3::pg_catalog.text))
  ORDER BY n LIMIT GREATEST($6::pg_catalog.int4 - (SELECT pg_catalog.count(*) FROM had), 0)),
 may AS MATERIALIZED (
 SELECT * FROM free WHERE NOT $8::pg_catalog.bool OR EXISTS (SELECT FROM free WHERE n = 0) OR EXISTS (SELECT FROM had WHERE unit = $3::pg_catalog.text || 0)),
 taken AS (
 INSERT INTO {lease} AS l (owner, unit, holder, acquired_at, expires_at)
 SELECT $1::pg_catalog.text, unit, $2::pg_catalog.text, COALESCE(since, pg_catalog.clock_timestamp()), pg_catalog.clock_timestamp() + $4::pg_catalog.interval FROM may
 ON CONFLICT (owner, unit) DO UPDATE SET holder = EXCLUDED.holder, acquired_at = EXCLUDED.acquired_at, expires_at = EXCLUDED.expires_at)
SELECT n, since, until FROM may ORDER BY n`

// join counts the holder among the members who share, or (who wants all and lacks the
// first part, or waits for another cut to end) does not.
const join = `WITH shares AS MATERIALIZED (
 SELECT CASE WHEN $5::pg_catalog.bool
  THEN EXISTS (SELECT FROM {lease} WHERE owner = $1::pg_catalog.text AND holder = $2::pg_catalog.text AND unit = $3::pg_catalog.text || 0)
  ELSE NOT EXISTS (SELECT FROM {lease} x WHERE x.owner = $1::pg_catalog.text AND pg_catalog.starts_with(x.unit, 'shard/')
                    AND NOT pg_catalog.starts_with(x.unit, $3::pg_catalog.text)) END AS yes),
 gone AS (
 DELETE FROM {lease} USING shares WHERE NOT yes AND owner = $1::pg_catalog.text AND unit = 'member/' || $2::pg_catalog.text)
INSERT INTO {lease} AS l (owner, unit, holder, acquired_at, expires_at)
SELECT $1::pg_catalog.text, 'member/' || $2::pg_catalog.text, $2::pg_catalog.text, pg_catalog.clock_timestamp(), pg_catalog.clock_timestamp() + $4::pg_catalog.interval
  FROM shares WHERE yes
ON CONFLICT (owner, unit) DO UPDATE SET expires_at = EXCLUDED.expires_at`

// enter adds one live lease to what is known.
func enter(state *outbox.LeaseState, unit, holder, me string, of int) error {
	switch {
	case strings.HasPrefix(unit, unitMember):
		state.Members++
		if unit < unitMember+me {
			state.Rank++
		}
	case holder != me:
		if !slices.Contains(state.Others, holder) {
			state.Others = append(state.Others, holder)
		}
	case strings.HasPrefix(unit, shardPrefix(of)):
		n, err := strconv.Atoi(unit[strings.LastIndexByte(unit, '/')+1:])
		if err != nil {
			return fmt.Errorf("a lease is called %q: %w", unit, err)
		}
		state.Own = append(state.Own, n)
	}
	return nil
}

// Release gives everything up at once; or, if a claim without an answer is in the middle,
// once the leases run out.
func (l *Leases) Release(ctx context.Context, holder string) error {
	return l.db.transact(ctx, "releasing the leases of source "+l.db.o.Source, statement{
		args: [][]byte{text(l.owner), text(holder)},
		sql:  l.sql("DELETE FROM {lease} l WHERE owner = $1::pg_catalog.text AND CASE WHEN holder = $2::pg_catalog.text THEN " + claimsOver + " ELSE FALSE END"),
	})
}
