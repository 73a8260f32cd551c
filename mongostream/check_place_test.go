package mongostream

import (
	"errors"
	"testing"
	"time"
)

func TestTheOplogsWindowIsJudgedOnceItIsFull(t *testing.T) {
	t.Parallel()
	hour := oplog{Oldest: at(0), Newest: at(3600), Size: 95, Max: 100}
	young := hour
	young.Size = 10
	unknown := hour
	unknown.Size, unknown.Max = 0, 0
	for _, c := range []struct {
		name    string
		log     oplog
		err     error
		warning bool
	}{
		{"long enough", oplog{Oldest: at(0), Newest: at(25 * 3600), Size: 95, Max: 100}, nil, false},
		{"short", hour, nil, true},
		{"short, but still growing", young, nil, false},
		{"short, and nobody says how full", unknown, nil, true},
		{"hidden", oplog{}, errHidden, true},
		{"out of reach", oplog{}, errors.New("x"), true},
	} {
		f := oplogFinding(c.log, c.err, 24*time.Hour)
		if f.Warning != c.warning || f.Err != nil || c.warning && f.Remedy == "" {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestTheMajorityAndTheRoomAreWarnedOf(t *testing.T) {
	t.Parallel()
	v := inventory{Facts: Facts{Applied: at(100), Majority: at(70)}}
	if f := v.majorityFinding(); f.Warning {
		t.Errorf("%+v", f)
	}
	v.Majority = at(69)
	if f := v.majorityFinding(); !f.Warning || f.Remedy == "" {
		t.Errorf("%+v", f)
	}
	full := oplog{Oldest: at(0), Newest: at(1000)}
	if f := roomFinding(500*time.Second, full); f.Warning {
		t.Errorf("%+v", f)
	}
	if f := roomFinding(499*time.Second, full); !f.Warning {
		t.Errorf("%+v", f)
	}
	full.Size, full.Max = 1, 100
	if f := roomFinding(time.Second, full); f.Warning {
		t.Errorf("nothing is cut yet: %+v", f)
	}
}

func TestAnIndexServesWhereItCannotLeaveDocumentsOut(t *testing.T) {
	t.Parallel()
	want := index{keys: []string{"a", "b"}}
	unique := index{keys: []string{"a", "b"}, unique: true}
	sparse := index{keys: []string{"a", "b"}, sparse: true}
	key := want.keyDocument()
	longer := append(key[:2:2], index{keys: []string{"c"}}.keyDocument()...)
	for _, c := range []struct {
		name string
		have indexThere
		want index
		ok   bool
	}{
		{"same", indexThere{Key: key}, want, true},
		{"longer", indexThere{Key: longer}, want, true},
		{"shorter", indexThere{Key: key[:1]}, want, false},
		{"unique for plain", indexThere{Key: key, Unique: true}, want, true},
		{"plain for unique", indexThere{Key: key}, unique, false},
		{"longer for unique", indexThere{Key: longer, Unique: true}, unique, false},
		{"sparse for plain", indexThere{Key: key, Sparse: true}, want, false},
		{"sparse for sparse", indexThere{Key: key, Sparse: true}, sparse, true},
		{"plain for sparse", indexThere{Key: key}, sparse, true},
		{"partial for plain", indexThere{Key: key, Partial: []byte{5, 0, 0, 0, 0}}, want, false},
		{"collation", indexThere{Key: key, Collation: []byte{5, 0, 0, 0, 0}}, want, false},
		{"hidden", indexThere{Key: key, Hidden: true}, want, false},
	} {
		if c.have.serves(c.want) != c.ok {
			t.Errorf("%s: %v", c.name, !c.ok)
		}
	}
}
