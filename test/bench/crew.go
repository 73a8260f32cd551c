package main

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// crew stands in for a test: the servers and the rig are made for tests, and
// clean up when one ends. Fatal ends the scope, not the program.
type crew struct {
	testing.TB // nil; for the method that only the library can have

	cleanups []func()
	failed   bool
}

type scopeFailed struct{}

// inScope runs f and then what f left to clean up, newest first. It answers
// false when f failed.
func inScope(f func(t *crew)) (ok bool) {
	t := &crew{}
	defer func() {
		r := recover()
		for i := len(t.cleanups) - 1; i >= 0; i-- {
			t.cleanups[i]()
		}
		ok = !t.failed
		if r != nil && r != any(scopeFailed{}) {
			panic(r)
		}
	}()
	f(t)
	return
}

// within runs f in a scope of its own, and fails with it.
func within(t *crew, f func(t *crew)) {
	if !inScope(f) {
		t.failed = true
		panic(scopeFailed{})
	}
}

func (t *crew) Helper()                  {}
func (t *crew) Name() string             { return "bench" }
func (t *crew) Context() context.Context { return context.Background() }
func (t *crew) Cleanup(f func())         { t.cleanups = append(t.cleanups, f) }
func (t *crew) Failed() bool             { return t.failed }
func (t *crew) Log(a ...any)             { fmt.Fprintln(os.Stderr, a...) }
func (t *crew) Logf(f string, a ...any)  { fmt.Fprintf(os.Stderr, f+"\n", a...) }

func (t *crew) Error(a ...any) {
	t.failed = true
	t.Log(a...)
}

func (t *crew) Errorf(f string, a ...any) {
	t.failed = true
	t.Logf(f, a...)
}

func (t *crew) Fatal(a ...any) {
	t.Error(a...)
	panic(scopeFailed{})
}

func (t *crew) Fatalf(f string, a ...any) {
	t.Errorf(f, a...)
	panic(scopeFailed{})
}

func (t *crew) TempDir() string {
	dir, err := os.MkdirTemp("", "walrelay-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
