package oracle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// world is a flawless run: 6 keys, 20 events each, 3 partitions.
func world() (committed []Commit, records []*kgo.Record) {
	offsets := map[int32]int64{}
	for seq := range int64(20) {
		for k := range int32(6) {
			c := Commit{EventID: fmt.Sprintf("%d-%d", k, seq), Key: fmt.Sprintf("key %d", k), Seq: seq, Value: fmt.Append(nil, seq)}
			committed = append(committed, c)
			p := k % 3
			records = append(records, record(c, p, offsets[p]))
			offsets[p] += 10
		}
	}
	return committed, records
}

func record(c Commit, partition int32, offset int64) *kgo.Record {
	return &kgo.Record{
		Topic: "t", Partition: partition, Offset: offset, Key: []byte(c.Key), Value: c.Value,
		Headers: []kgo.RecordHeader{{Key: "other", Value: []byte("x")}, {Key: "forze_event_id", Value: []byte(c.EventID)}},
	}
}

func TestFlawlessRunIsAcquitted(t *testing.T) {
	t.Parallel()
	committed, records := world()
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	if v := Check(committed, records); !v.Clean() || v.Committed != 120 || v.Records != 120 {
		t.Error(v)
	}
}

func TestEachDefectIsCaughtAndNoOther(t *testing.T) {
	t.Parallel()
	at := func(id string, rs []*kgo.Record) int {
		return slices.IndexFunc(rs, func(r *kgo.Record) bool { return EventID(r) == id })
	}
	cases := map[string]struct {
		spoil func(*[]Commit, *[]*kgo.Record)
		want  Verdict
	}{
		"a record is missing": {
			func(_ *[]Commit, rs *[]*kgo.Record) { *rs = slices.Delete(*rs, 7, 8) },
			Verdict{Lost: 1},
		},
		"a record is there three times": {
			func(_ *[]Commit, rs *[]*kgo.Record) {
				for i := range int64(2) {
					again := *(*rs)[7]
					again.Offset += 2000 + i
					*rs = append(*rs, &again)
				}
			},
			Verdict{Duplicates: 2},
		},
		"a duplicate before a later event is no inversion": {
			func(_ *[]Commit, rs *[]*kgo.Record) {
				again := *(*rs)[at("1-3", *rs)]
				again.Offset = (*rs)[at("1-9", *rs)].Offset + 1
				*rs = append(*rs, &again)
			},
			Verdict{Duplicates: 1},
		},
		"two events of a key have changed places": {
			func(_ *[]Commit, rs *[]*kgo.Record) {
				a, b := (*rs)[at("2-4", *rs)], (*rs)[at("2-5", *rs)]
				a.Offset, b.Offset = b.Offset, a.Offset
			},
			Verdict{Inversions: 1},
		},
		"one event overtook three": {
			func(_ *[]Commit, rs *[]*kgo.Record) {
				(*rs)[at("2-8", *rs)].Offset = (*rs)[at("2-5", *rs)].Offset - 1
			},
			Verdict{Inversions: 3},
		},
		"two keys of a partition have changed places": {
			func(_ *[]Commit, rs *[]*kgo.Record) {
				a, b := (*rs)[at("0-4", *rs)], (*rs)[at("3-4", *rs)]
				a.Offset, b.Offset = b.Offset, a.Offset
			},
			Verdict{},
		},
		"a rolled back event arrived": {
			func(cs *[]Commit, rs *[]*kgo.Record) {
				*rs = append(*rs, record(Commit{EventID: "rolled back", Key: "key 1", Seq: 99}, 1, 9000))
			},
			Verdict{Phantoms: 1},
		},
		"a record has no id": {
			func(_ *[]Commit, rs *[]*kgo.Record) { (*rs)[5].Headers = nil },
			Verdict{Phantoms: 1, Lost: 1},
		},
		"a value was printed anew": {
			func(_ *[]Commit, rs *[]*kgo.Record) { (*rs)[5].Value = []byte("1.0") },
			Verdict{Changed: 1},
		},
		"a duplicate has other headers": {
			func(_ *[]Commit, rs *[]*kgo.Record) {
				again := *(*rs)[7]
				again.Offset += 2000
				again.Headers = again.Headers[1:]
				*rs = append(*rs, &again)
			},
			Verdict{Duplicates: 1, Changed: 1},
		},
		"a record has another key": {
			func(_ *[]Commit, rs *[]*kgo.Record) { (*rs)[5].Key = []byte("key 9") },
			Verdict{Misplaced: 1},
		},
		"a key is in two partitions": {
			func(_ *[]Commit, rs *[]*kgo.Record) { (*rs)[at("0-19", *rs)].Partition = 1 },
			Verdict{Misplaced: 1},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			committed, records := world()
			c.spoil(&committed, &records)
			got := Check(committed, records)
			counts := Verdict{
				Lost: got.Lost, Duplicates: got.Duplicates, Inversions: got.Inversions,
				Phantoms: got.Phantoms, Changed: got.Changed, Misplaced: got.Misplaced,
			}
			if fmt.Sprint(counts) != fmt.Sprint(c.want) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			found := got.Lost + got.Duplicates + got.Inversions + got.Phantoms + got.Changed + got.Misplaced
			if len(got.Examples) != found {
				t.Errorf("%d defects have %d examples", found, len(got.Examples))
			}
		})
	}
}

func TestRequireRefusesATestWithoutEvents(t *testing.T) {
	t.Parallel()
	judged := &recorder{TB: t}
	Require(judged, nil, nil, 0)
	if !judged.failed {
		t.Error("a run without a single committed event passed")
	}
}

// recorder notes a failure instead of failing.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Error(...any)          { r.failed = true }
func (r *recorder) Errorf(string, ...any) { r.failed = true }
