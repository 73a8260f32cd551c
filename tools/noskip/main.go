// Noskip runs "go test -json" with the arguments given, shows what go test would
// show, and fails when a test was skipped or none was run: a test that did not
// run proves nothing.
//
//	noskip [flags of go test] packages
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// event is a line of go test -json; see "go doc test2json".
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

func main() {
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "noskip:", err)
		os.Exit(2)
	}
	t := newTally(os.Stdout)
	t.read(out)
	failed := cmd.Wait() != nil
	if !t.close() || failed {
		os.Exit(1)
	}
}

// tally counts tests and keeps the output of each until it is known to matter.
type tally struct {
	to                      io.Writer
	output                  map[[2]string][]string // by package and test
	passed, failed, skipped int
	skips                   []string
}

func newTally(to io.Writer) *tally { return &tally{to: to, output: map[[2]string][]string{}} }

func (t *tally) read(r io.Reader) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil {
			t.take(e)
		} else {
			_, _ = io.WriteString(t.to, line) // not of test2json: a tool's own message
		}
		if err != nil {
			return
		}
	}
}

func (t *tally) take(e event) {
	key := [2]string{e.Package, e.Test}
	switch {
	case e.Action == "build-output":
		_, _ = io.WriteString(t.to, e.Output)
	case e.Action == "output" && e.Test == "" && !noise(e.Output):
		_, _ = io.WriteString(t.to, e.Output)
	case e.Action == "output" && e.Test != "":
		t.output[key] = append(t.output[key], e.Output)
	case e.Test == "":
		if e.Action == "fail" {
			t.flush(e.Package) // a panic or time-out ends tests without a word
		}
	case e.Action == "pass":
		t.passed++
		delete(t.output, key)
	case e.Action == "skip":
		t.skipped++
		t.skips = append(t.skips, e.Package+" "+e.Test)
		t.show(key)
	case e.Action == "fail":
		t.failed++
		t.show(key)
	}
}

// noise are lines about the package that go test does not show either.
func noise(line string) bool {
	return line == "PASS\n" || strings.HasPrefix(line, "coverage: ") || strings.HasPrefix(line, "=== ")
}

func (t *tally) show(key [2]string) {
	for _, line := range t.output[key] {
		if !strings.HasPrefix(line, "=== ") {
			_, _ = io.WriteString(t.to, line)
		}
	}
	delete(t.output, key)
}

func (t *tally) flush(pkg string) {
	for key := range t.output {
		if key[0] == pkg {
			t.show(key)
		}
	}
}

// close prints the sum and reports whether it is one to be content with.
func (t *tally) close() bool {
	for _, skip := range t.skips {
		_, _ = fmt.Fprintln(t.to, "FAIL: skipped", skip)
	}
	if t.passed+t.failed == 0 {
		_, _ = fmt.Fprintln(t.to, "FAIL: no test was run")
	}
	_, _ = fmt.Fprintf(t.to, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	return t.failed == 0 && t.skipped == 0 && t.passed > 0
}
