package mongo

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/outbox"
	"github.com/walrelay/walrelay/test/mongoserver"
)

// stocked is a house with n pending rows of about 500 B on one route, as the collection of a busy shop.
func stocked(tb testing.TB, srv *mongoserver.Server, n int, change func(o *Options)) *house {
	h := newHouse(tb, srv, event.Forze, change)
	body := strings.Repeat("x", 300)
	for from := 1; from <= n; from += 10_000 {
		var rows []any
		for i := from; i < min(from+10_000, n+1); i++ {
			row := forzeRow(i, fmt.Sprint("k", i%1000))
			row[3].Value, row[7].Value = "orders", bson.D{is("body", body)}
			rows = append(rows, row)
		}
		h.add(rows...)
	}
	return h
}

// BenchmarkClaimAndSettle claims and settles batches, in turns with commands written by hand that
// do the same to a collection of their own: whatever else the machine does hits both. The figures are
// rows/s of each, and what walrelay reaches of the other.
func BenchmarkClaimAndSettle(b *testing.B) {
	const rows = 10_000
	for _, mode := range []ClaimMode{ClaimRow, ClaimLease} {
		for _, after := range []AfterPublish{MarkIt, Delete} {
			for _, batch := range []int{500, 5000} {
				b.Run(fmt.Sprintf("%s/%s/%d", mode, after, batch), func(b *testing.B) {
					srv := mongoserver.Shared(b)
					change := func(o *Options) { o.Claim, o.AfterPublish = mode, after }
					ours, theirs := stocked(b, srv, rows, change), stocked(b, srv, rows, change)
					var took, bare time.Duration
					turns := 0
					for b.Loop() {
						for range rows / batch {
							began := time.Now()
							n := ours.turn(batch)
							took += time.Since(began)
							began = time.Now()
							m := theirs.bareTurn(mode, after, batch)
							bare += time.Since(began)
							if n != batch || m != batch {
								b.Fatalf("turn %d took %d and %d rows", turns, n, m)
							}
							turns++
						}
					}
					done := float64(turns * batch)
					b.ReportMetric(done/took.Seconds(), "rows/s")
					b.ReportMetric(done/bare.Seconds(), "bare-rows/s")
					b.ReportMetric(bare.Seconds()/took.Seconds(), "of-bare")
				})
			}
		}
	}
}

// turn claims one batch and publishes it.
func (h *house) turn(batch int) int {
	c := h.claim(outbox.Request{Limit: batch})
	outcomes := make([]outbox.Outcome, len(c.Rows))
	for i := range c.Rows {
		outcomes[i] = outbox.Outcome{ID: c.Rows[i].ID, Fence: c.Fence}
	}
	if lost := h.settle(outcomes...); len(lost) > 0 {
		h.t.Fatalf("lost %d", len(lost))
	}
	return len(c.Rows)
}

// bareTurn is what somebody would write by hand for rows without a due time: the three commands of a
// claim and one mark, with the same guards and the same write concern, and nothing made of the documents.
func (h *house) bareTurn(mode ClaimMode, after AfterPublish, batch int) int {
	c := h.c.Clone(options.Collection().SetWriteConcern(writeconcern.Majority()))
	first := options.Find().SetLimit(int64(batch)).SetBatchSize(int32(batch) + 1).SetSort(ascending([]string{"hlc", "created_at", "id"}))
	state := pending
	if mode == ClaimRow {
		first.SetProjection(bson.D{is(fieldID, 1)})
	}
	cursor, err := c.Find(h.ctx(), bson.D{is("status", pending), is("available_at", nil)}, first)
	ids := h.readAll(cursor, err)
	if mode == ClaimRow {
		state = processing
		token := newToken()
		_, err := c.UpdateMany(h.ctx(), bson.D{in(fieldID, ids), is("status", pending)}, bson.D{
			is("$set", bson.D{is("status", processing), is("claim_token", token), is("processing_at", time.Now())}),
		})
		if err != nil {
			h.t.Fatal(err)
		}
		cursor, err := c.Find(h.ctx(), bson.D{is("claim_token", token)}, options.Find().SetBatchSize(int32(batch)+1).SetSort(ascending([]string{"hlc", "created_at", "id"})))
		ids = h.readAll(cursor, err)
	}
	if after == Delete {
		_, err = c.DeleteMany(h.ctx(), bson.D{in(fieldID, ids), is("status", state)})
	} else {
		_, err = c.UpdateMany(h.ctx(), bson.D{in(fieldID, ids), is("status", state)}, bson.D{is("$set", bson.D{
			is("status", published), is("published_at", time.Now()), is("last_error", nil),
		})})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return len(ids)
}

func (h *house) readAll(cursor *driver.Cursor, err error) (ids bson.A) {
	if err == nil {
		err = each(h.ctx(), cursor, func(doc bson.Raw) error { ids = append(ids, doc.Lookup(fieldID)); return nil })
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return ids
}
