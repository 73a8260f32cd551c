package main

import (
	"strings"
	"testing"
)

func run(lines ...string) (string, bool) {
	var shown strings.Builder
	t := newTally(&shown)
	t.read(strings.NewReader(strings.Join(lines, "\n") + "\n"))
	ok := t.close()
	return shown.String(), ok
}

const (
	talk   = `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: said\n"}`
	passed = `{"Action":"pass","Package":"p","Test":"TestA"}`
	line   = `{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`
)

func TestPassingTestsShowTheirPackageOnly(t *testing.T) {
	t.Parallel()
	shown, ok := run(talk, passed, `{"Action":"output","Package":"p","Output":"PASS\n"}`, line, `{"Action":"pass","Package":"p"}`)
	if want := "ok  \tp\t0.1s\n1 passed, 0 failed, 0 skipped\n"; !ok || shown != want {
		t.Errorf("ok %t, shown %q, want %q", ok, shown, want)
	}
}

func TestSkipFails(t *testing.T) {
	t.Parallel()
	shown, ok := run(passed, talk, `{"Action":"skip","Package":"p","Test":"TestA"}`, line)
	if ok || !strings.Contains(shown, "FAIL: skipped p TestA") || !strings.Contains(shown, "said") {
		t.Errorf("ok %t, shown %q", ok, shown)
	}
}

func TestFailureShowsItsOutput(t *testing.T) {
	t.Parallel()
	shown, ok := run(talk, `{"Action":"fail","Package":"p","Test":"TestA"}`)
	if ok || !strings.Contains(shown, "said") {
		t.Errorf("ok %t, shown %q", ok, shown)
	}
}

func TestOutputOfATestThatPanicsIsShown(t *testing.T) {
	t.Parallel()
	shown, _ := run(passed, talk, `{"Action":"fail","Package":"p"}`)
	if !strings.Contains(shown, "said") {
		t.Errorf("shown %q", shown)
	}
}

func TestNoTestFails(t *testing.T) {
	t.Parallel()
	if shown, ok := run(`{"Action":"skip","Package":"p"}`); ok {
		t.Errorf("passed, shown %q", shown)
	}
}

func TestBrokenBuildIsShown(t *testing.T) {
	t.Parallel()
	shown, ok := run(`{"ImportPath":"p","Action":"build-output","Output":"x.go:1: syntax error\n"}`, `{"Action":"fail","Package":"p"}`)
	if ok || !strings.Contains(shown, "syntax error") {
		t.Errorf("ok %t, shown %q", ok, shown)
	}
}
