package mongo

// C51 Two kinds of UUID
//
// Source: yougov/mongo-connector#721, mongo-dart/mongo_dart#367, mongodb/mongo-python-driver#467.
//
// Ideal: subtype 4 and text give the same text. Subtype 3, whose order of bytes depends on the
// driver that wrote it, is read as the configuration says and refused by name otherwise: never guessed.

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/walrelay/walrelay/test/mongoserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/rig"
)

// legacy is a UUID as old drivers wrote it.
func legacy(u uuid.UUID, driver string) bson.Binary {
	b := slices.Clone(u[:])
	switch driver {
	case "java": // each half the other way round
		slices.Reverse(b[:8])
		slices.Reverse(b[8:])
	case "csharp": // the first three parts are numbers
		slices.Reverse(b[:4])
		slices.Reverse(b[4:6])
		slices.Reverse(b[6:8])
	}
	return bson.Binary{Subtype: 3, Data: b}
}

func TestC51UUIDsAreOneTextOrRefusedAndNeverGuessed(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"", "java", "csharp", "python"} {
		t.Run("legacy_uuid "+setting, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, mongoserver.Shared(t))
			s.Kafka = "on_poison: park\n"
			if setting != "" {
				s.Stream = "legacy_uuid: " + setting + "\n"
			}
			s.Init(t)
			r := s.Start(t)
			s.streams(r)
			u, key := uuid.New(), uuid.New()
			put := func(u, key any) {
				d := rig.Document("orders", "", bson.D{{Key: "n", Value: 1}})
				for i := range d {
					switch d[i].Key {
					case "event_id":
						d[i].Value = u
					case "ordering_key":
						d[i].Value = key
					case "id":
						d[i].Value = uuid.NewString() // the event id is unique in a route only
					}
				}
				if _, err := s.box.InsertOne(s.ctx(), d); err != nil {
					t.Fatal(err)
				}
			}
			put(u.String(), key.String())
			put(bson.Binary{Subtype: 4, Data: u[:]}, bson.Binary{Subtype: 4, Data: key[:]})
			want := 2
			if setting != "" {
				put(legacy(u, setting), legacy(key, setting))
				want++
			} else {
				for _, d := range []string{"java", "csharp", "python"} {
					put(legacy(u, d), "another key "+d)
					put(u.String()[:35]+d, legacy(key, d))
				}
			}
			last := s.insert("the last")
			r.Eventually("the last event", soon, func() error {
				if !slices.Contains(s.arrived(), last) {
					return errMissing
				}
				return nil
			})
			n := 0
			for _, rec := range s.k.Consume(t, s.Topic) {
				if oracle.EventID(rec) == last {
					continue
				}
				n++
				if oracle.EventID(rec) != u.String() || string(rec.Key) != key.String() {
					t.Errorf("an event id %q with the key %q, want %s and %s", oracle.EventID(rec), rec.Key, u, key)
				}
			}
			if n != want {
				t.Errorf("%d of the events arrived, want %d", n, want)
			}
			if setting == "" {
				var said strings.Builder
				for n := range 6 {
					out, _ := s.Command(t, "parked", "show", strconv.Itoa(n+1))
					said.WriteString(out)
				}
				contains(t, "parked show", said.String(), `"event_id"`, `"ordering_key"`, "UUID of binary subtype 3", "legacy_uuid")
			}
		})
	}
}
