package workload

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/test/oracle"
)

// row is one event that a writer is about to insert.
type row struct {
	id    uuid.UUID
	key   *key
	seq   int64
	bytes string // payload
	at    time.Time
}

// key is one ordering key. Its sequence is drawn while its lock is held in the
// database, so the sequence follows the order of commits.
type key struct {
	name  string
	route string
	lock  int64 // advisory lock
	next  int64 // guarded by the load's mutex; see Load.draw
}

// values are the row's, in the order of Schema.columns.
func (r row) values(s Schema) []any {
	values := []any{r.id, r.key.route, r.key.name, "made", r.bytes, r.at}
	if s == Forze {
		values = append(values, uuid.New(), r.at.UnixMilli()<<16|r.seq&0xffff)
	}
	return values
}

func (r row) commit() oracle.Commit {
	return oracle.Commit{EventID: r.id.String(), Route: r.key.route, Key: r.key.name, Seq: r.seq}
}

func payload(k *key, seq int64, writer, padding int) string {
	return fmt.Sprintf(`{"seq":%d,"key":%q,"writer":%d,"pad":%q}`, seq, k.name, writer, strings.Repeat("x", padding))
}
