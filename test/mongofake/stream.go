package mongofake

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// changeLog is what all change streams read.
type changeLog struct {
	events    []event
	token     string // the post-batch token of one who has read all
	forgotten string // tokens below are lost
	cursors   map[int64]*cursor
	lastID    int64
}

type event struct {
	token    string
	time     bson.Timestamp
	document bson.Raw
	endsHere bool // a batch ends with it
}

// cursor is an open change stream.
type cursor struct {
	namespace string
	next      int // index into events
}

// Codes of mongod's.
const (
	cursorNotFound = 43
	historyLost    = 286
)

// Emit appends change events to the log, such as Insert makes, their tokens rising
// bytewise. No batch goes beyond the events of one call.
func (s *Server) Emit(events ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, document := range events {
		raw, err := bson.Marshal(document)
		if err != nil {
			panic(fmt.Sprintf("mongofake: event %d: %v", i, err))
		}
		e := event{document: raw, token: tokenOf(bson.Raw(raw).Lookup("_id")), endsHere: i == len(events)-1}
		if e.token == "" || e.token <= s.log.token {
			panic(fmt.Sprintf("mongofake: event %d has token %q after %q", i, e.token, s.log.token))
		}
		if t, inc, ok := bson.Raw(raw).Lookup("clusterTime").TimestampOK(); ok {
			e.time = bson.Timestamp{T: t, I: inc}
			if e.time.After(s.now) {
				s.now = e.time
			}
		}
		s.log.events, s.log.token = append(s.log.events, e), e.token
	}
	s.happened()
}

// Advance moves the post-batch token on without an event, as writes elsewhere do.
func (s *Server) Advance(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.token = max(s.log.token, token)
	s.happened()
}

// Forget loses all positions below the token: opening there gives
// ChangeStreamHistoryLost.
func (s *Server) Forget(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.forgotten = token
}

// OpenCursors counts the change streams that were neither closed nor killed. A
// client that hangs up leaves its own open, as with mongod.
func (s *Server) OpenCursors() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.log.cursors)
}

// KillCursors forgets the open change streams: their next getMore finds none.
func (s *Server) KillCursors() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.log.cursors)
	s.happened()
}

// open answers aggregate with $changeStream.
func (s *Server) open(c Command) Answer {
	pipeline := c.Documents("pipeline")
	if len(pipeline) == 0 || pipeline[0].Lookup("$changeStream").Type == 0 {
		return Fail(59, "the fake aggregates nothing but $changeStream")
	}
	stage := pipeline[0].Lookup("$changeStream").Document()
	s.mu.Lock()
	defer s.mu.Unlock()
	log := &s.log
	collection, whole := c.Body.Lookup("aggregate").StringValueOK()
	if !whole {
		collection = "$cmd.aggregate"
	}
	cur := &cursor{namespace: c.Database + "." + collection, next: len(log.events)}
	token := cmp.Or(tokenOf(stage.Lookup("startAfter")), tokenOf(stage.Lookup("resumeAfter")))
	if token != "" {
		if token < log.forgotten {
			return Fail(historyLost, "Resume of change stream was not possible, as the resume point may no longer be in the oplog.",
				"NonResumableChangeStreamError")
		}
		cur.next, _ = slices.BinarySearchFunc(log.events, token, func(e event, t string) int {
			if e.token <= t {
				return -1
			}
			return 1
		})
	} else if t, i, ok := stage.Lookup("startAtOperationTime").TimestampOK(); ok {
		from := bson.Timestamp{T: t, I: i}
		cur.next = slices.IndexFunc(log.events, func(e event) bool { return e.time.Compare(from) >= 0 })
		if cur.next < 0 {
			cur.next = len(log.events)
		}
	}
	log.lastID++
	log.cursors[log.lastID] = cur
	limit, _ := c.Body.Lookup("cursor", "batchSize").AsInt64OK()
	if c.Body.Lookup("cursor", "batchSize").Type == 0 {
		limit = 101
	}
	return s.batch(log.lastID, cur, "firstBatch", int(limit), token)
}

// getMore waits for events as long as the client allows, a second by default.
func (s *Server) getMore(c *conn, command Command) Answer {
	id, _ := command.Lookup("getMore").AsInt64OK()
	limit, _ := command.Lookup("batchSize").AsInt64OK()
	patience := time.Second
	if ms, ok := command.Lookup("maxTimeMS").AsInt64OK(); ok {
		patience = time.Duration(ms) * time.Millisecond
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	timedOut := false
	for {
		s.mu.Lock()
		cur, changed := s.log.cursors[id], s.changed
		if cur == nil {
			s.mu.Unlock()
			return Fail(cursorNotFound, fmt.Sprintf("cursor id %d not found", id))
		}
		if cur.next < len(s.log.events) || timedOut {
			answer := s.batch(id, cur, "nextBatch", int(limit), "")
			s.mu.Unlock()
			return answer
		}
		s.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			timedOut = true
		case <-c.left:
			return Drop()
		}
	}
}

// batch takes at most limit events off the cursor; for the first batch 0 is none,
// for others no limit. The caller holds mu. Where the cursor stands before all
// events its post-batch token is that of the opening.
func (s *Server) batch(id int64, cur *cursor, field string, limit int, opened string) Answer {
	events := bson.A{}
	unlimited := field == "nextBatch" && limit == 0
	for (unlimited || len(events) < limit) && cur.next < len(s.log.events) {
		e := s.log.events[cur.next]
		events = append(events, e.document)
		cur.next++
		if e.endsHere {
			break
		}
	}
	token := s.log.token
	if cur.next < len(s.log.events) {
		token = opened
		if cur.next > 0 {
			token = max(token, s.log.events[cur.next-1].token)
		}
	}
	reply := bson.D{{Key: "id", Value: id}, {Key: "ns", Value: cur.namespace}, {Key: field, Value: events}}
	if token != "" {
		reply = append(reply, bson.E{Key: "postBatchResumeToken", Value: bson.D{{Key: "_data", Value: token}}})
	}
	return OK(bson.E{Key: "cursor", Value: reply})
}

func (s *Server) killCursors(c Command) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	killed, missing := bson.A{}, bson.A{}
	if ids, ok := c.Body.Lookup("cursors").ArrayOK(); ok {
		values, _ := ids.Values()
		for _, v := range values {
			id := v.AsInt64()
			if s.log.cursors[id] == nil {
				missing = append(missing, id)
				continue
			}
			delete(s.log.cursors, id)
			killed = append(killed, id)
		}
	}
	s.happened()
	return OK(bson.E{Key: "cursorsKilled", Value: killed}, bson.E{Key: "cursorsNotFound", Value: missing},
		bson.E{Key: "cursorsAlive", Value: bson.A{}}, bson.E{Key: "cursorsUnknown", Value: bson.A{}})
}

// tokenOf is the text of {_data: text}, empty where there is none.
func tokenOf(v bson.RawValue) string {
	document, ok := v.DocumentOK()
	if !ok {
		return ""
	}
	token, _ := document.Lookup("_data").StringValueOK()
	return token
}
