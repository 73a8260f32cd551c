package ground

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

func TestPortIsNeverGivenTwice(t *testing.T) {
	t.Parallel()
	given := map[int]bool{}
	for range 200 {
		port, release, err := Port()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(release)
		if given[port] {
			t.Fatalf("port %d is given twice", port)
		}
		given[port] = true
	}
}

func TestOnlyFoldersOfTheDeadAreSwept(t *testing.T) {
	t.Parallel()
	alive, release, err := RunDir("alive")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	scratch, err := Scratch()
	if err != nil {
		t.Fatal(err)
	}
	dead, err := os.MkdirTemp(scratch, "run-dead-")
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := RunDir("again") // sweeps
	if err != nil {
		t.Fatal(err)
	}
	again()
	if _, err := os.Stat(alive); err != nil {
		t.Errorf("the folder of a living process: %v", err)
	}
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the folder of a dead process is still there: %v", err)
	}
}

func TestCacheIsWhereTheEnvironmentSays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "elsewhere")
	t.Setenv(CacheVariable, dir)
	if got, err := WritableCache(); err != nil || got != dir {
		t.Errorf("cache is %q, %v; want %q", got, err, dir)
	}
	if err := os.WriteFile(filepath.Join(dir, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, found := FindCached("kept"); !found || got != dir {
		t.Errorf("file found %t in %q", found, got)
	}
}

func TestProcessIsSeenToEnd(t *testing.T) {
	t.Parallel()
	p, err := StartProcess(exec.Command("sleep", "60"), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Running() {
		t.Fatal("not running")
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if p.Running() || p.Err() == nil {
		t.Errorf("running %t, ended with %v", p.Running(), p.Err())
	}
	if _, err := StartProcess(exec.Command("no-such-program"), syscall.SIGKILL); err == nil {
		t.Error("a program that does not exist was started")
	}
}
