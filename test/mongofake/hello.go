package mongofake

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

const setName = "rs0"

// builtIn are the commands of which no test is.
func (s *Server) builtIn() {
	for _, name := range []string{"hello", "isMaster", "ismaster"} {
		s.handlers[name] = s.hello
	}
	for _, name := range []string{"ping", "endSessions"} {
		s.handlers[name] = func(Command) Answer { return OK() }
	}
	s.handlers["buildInfo"] = func(Command) Answer {
		return OK(bson.E{Key: "version", Value: "6.0.5"}, bson.E{Key: "versionArray", Value: bson.A{6, 0, 5, 0}})
	}
	s.handlers["aggregate"] = s.open
	s.handlers["killCursors"] = s.killCursors
}

func (s *Server) hello(Command) Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := bson.D{{Key: "ts", Value: s.now}, {Key: "t", Value: int64(1)}}
	written := time.Unix(int64(s.now.T), 0)
	fields := bson.D{
		{Key: "helloOk", Value: true},
		{Key: "ismaster", Value: !s.secondary},
		{Key: "isWritablePrimary", Value: !s.secondary},
		{Key: "secondary", Value: s.secondary},
		{Key: "setName", Value: setName},
		{Key: "setVersion", Value: 1},
		{Key: "hosts", Value: bson.A{s.address}},
		{Key: "me", Value: s.address},
		{Key: "lastWrite", Value: bson.D{
			{Key: "opTime", Value: at},
			{Key: "lastWriteDate", Value: written},
			{Key: "majorityOpTime", Value: at},
			{Key: "majorityWriteDate", Value: written},
		}},
		{Key: "maxBsonObjectSize", Value: 16 << 20},
		{Key: "maxMessageSizeBytes", Value: 48000000},
		{Key: "maxWriteBatchSize", Value: 100000},
		{Key: "localTime", Value: time.Now()},
		{Key: "logicalSessionTimeoutMinutes", Value: 30},
		{Key: "minWireVersion", Value: 0},
		{Key: "maxWireVersion", Value: 17},
		{Key: "readOnly", Value: false},
	}
	return OK(fields...)
}

// StepDown makes the server a secondary, and back with false. Clients see it with
// their next heartbeat; errors of commands are the script's.
func (s *Server) StepDown(secondary bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secondary = secondary
}

// SetTime sets the operation time and the majority's that the server tells. Emit
// moves it on to the events' cluster times.
func (s *Server) SetTime(now bson.Timestamp) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}
