package event

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pglogrepl"
	"pgregory.net/rapid"
)

func TestLSNReadsAndPrintsAsThePeerLibraryDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := LSN(rapid.Uint64().Draw(t, "lsn"))
		if want := pglogrepl.LSN(l).String(); l.String() != want {
			t.Fatalf("%d prints as %s, want %s", uint64(l), l, want)
		}
		if back, err := ParseLSN(l.String()); err != nil || back != l {
			t.Fatalf("%s reads back as %s %v", l, back, err)
		}
	})
	for _, text := range []string{"", "0", "/", "1/", "/1", "1/1/1", "g/0", "0/100000000", "-1/0", " 0/1"} {
		if l, err := ParseLSN(text); err == nil {
			t.Errorf("%q reads as %s", text, l)
		}
	}
}

func TestPositionsOfOneSourceAreOrdered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b Position
		want int
	}{
		{Position{}, AtLSN(1), -1},
		{AtLSN(2), AtLSN(2), 0},
		{AtLSN(3), AtLSN(2), 1},
		{AtToken("82"), AtToken("83"), -1},
		{AtToken("82"), AtToken("82"), 0},
		{Position{}, AtToken("8"), -1},
	} {
		if got := c.a.Compare(c.b); got != c.want {
			t.Errorf("%s against %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
	if got := LSN(10).Sub(4); got != 6 {
		t.Errorf("10 - 4 = %d", got)
	}
	if got := LSN(4).Sub(10); got != 0 {
		t.Errorf("4 - 10 = %d, want 0", got)
	}
}

func TestMemoryIsFreedOnceByItsLastUser(t *testing.T) {
	t.Parallel()
	freed := 0
	m := NewMemory(func() { freed++ })
	m.Retain(100)
	var users sync.WaitGroup
	for range 100 {
		users.Go(m.Release)
	}
	users.Wait()
	if freed != 0 {
		t.Fatal("freed while its maker uses it")
	}
	m.Release()
	if freed != 1 {
		t.Fatalf("freed %d times", freed)
	}
}

func TestAnErrorThatDoesNotAnswerHalts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want Class
	}{
		{errors.New("?"), Halt},
		{&Error{Class: Retry}, Retry},
		{fmt.Errorf("reading: %w", &Error{Class: Poison}), Poison},
		{errors.Join(errors.New("?"), &Error{Class: Retry}), Retry},
		{nil, Halt},
	} {
		if got := ClassOf(c.err); got != c.want {
			t.Errorf("%v is %s, want %s", c.err, got, c.want)
		}
	}
}

func TestConditionKeepsWhereItHappenedAndTheRemedyApart(t *testing.T) {
	t.Parallel()
	e := &Error{What: "slot s is gone", Remedy: "make it", Anchor: "slot-lost", Cause: errors.New("42704")}
	c := ConditionOf(fmt.Errorf("source orders: %w", e))
	if c.What != "source orders: slot s is gone: 42704" || c.Remedy != "make it" || c.Anchor != "slot-lost" {
		t.Errorf("condition %+v", c)
	}
	if !strings.Contains(e.Error(), "(remedy: make it)") {
		t.Errorf("error %q lacks its remedy", e)
	}
	if c := ConditionOf(errors.New("plain")); c.What != "plain" {
		t.Errorf("condition %+v", c)
	}
}

func TestPresetsNameTheirColumnsAndARenameIsTaken(t *testing.T) {
	t.Parallel()
	s, err := NewSchema(Debezium, map[Field]string{RowID: "event_uuid", Payload: "body"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Columns[RowID] != "event_uuid" || s.Columns[EventID] != "event_uuid" || s.Columns[Payload] != "body" || s.Columns[Route] != "aggregatetype" {
		t.Errorf("columns %v", s.Columns)
	}
	if _, err := NewSchema("other", nil); err == nil {
		t.Error("an unknown preset was taken")
	}
	if _, err := NewSchema(Forze, map[Field]string{Payload: ""}); err == nil {
		t.Error("an empty column name was taken")
	}
	for f := range NumFields {
		if back, ok := FieldByName(f.String()); !ok || back != f {
			t.Errorf("field %s is not found by its name", f)
		}
	}
}
