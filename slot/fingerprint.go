package slot

import (
	"context"
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// fingerprint is a text that changes whenever the publication's contents that
// concern our tables change, and also when it was dropped and made again in
// between: oids and row versions (xmin) of the catalog rows are never reused
// for another state.
func fingerprint(ctx context.Context, conn DB, opt Options) (string, error) {
	const query = `
select coalesce((
	select p.oid::text || '.' || p.xmin::text ||
		coalesce((select string_agg(r.oid::text || '.' || r.xmin::text, ',' order by r.oid)
			from pg_catalog.pg_publication_rel r
			where r.prpubid = p.oid and r.prrelid = any(
				select c.oid from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
				join unnest($2::text[], $3::text[]) as t(s, r) on t.s = n.nspname and t.r = c.relname)), '') ||
		coalesce((select string_agg(s.oid::text || '.' || s.xmin::text, ',' order by s.oid)
			from pg_catalog.pg_publication_namespace s where s.pnpubid = p.oid), '')
	from pg_catalog.pg_publication p where p.pubname = $1), '')`
	schemas := make([]string, len(opt.Tables))
	names := make([]string, len(opt.Tables))
	for i, t := range opt.Tables {
		schemas[i], names[i] = t.Schema, t.Name
	}
	var print string
	if err := conn.QueryRow(ctx, query, opt.Publication, schemas, names).Scan(&print); err != nil {
		return "", fmt.Errorf("reading publication %s: %w", opt.Publication, err)
	}
	return print, nil
}

// checkPublication is nil as long as the publication is the one that the running
// session began with.
func (s *Stream) checkPublication(ctx context.Context, conn DB) error {
	s.identity.Lock()
	want := s.identity.known.Publication
	s.identity.Unlock()
	if want == "" {
		return nil
	}
	print, err := fingerprint(ctx, conn, s.opt)
	if err != nil {
		return Classify(err)
	}
	if print == want {
		return nil
	}
	// The better message says what is wrong with it now, if something still is.
	if err := CheckPublication(ctx, conn, s.opt); err != nil {
		return err
	}
	return changedPublication(s.opt, event.LSN(s.settled.Load()))
}
