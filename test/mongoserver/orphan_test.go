package mongoserver

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// orphanVariable makes this test binary start a server, freeze it, and wait.
const orphanVariable = "MONGOSERVER_TEST_ORPHAN"

func TestAFrozenServerEndsWithItsTestProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv(orphanVariable) != "" {
		s := Start(t, Options{Standalone: true})
		s.Pause(t)
		fmt.Printf("pid %d\n", s.PID(0))
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), orphanVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), "pid "); found {
			pid, _ = strconv.Atoi(text)
		}
	}
	if err := cmd.Process.Kill(); err != nil || pid == 0 {
		t.Fatalf("no server was started: pid %d, %v", pid, err)
	}
	_ = cmd.Wait()
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	for deadline := time.Now().Add(20 * time.Second); running(pid); <-retry.C {
		if time.Now().After(deadline) {
			t.Fatalf("mongod, process %d, still runs 20 s after its test process was killed", pid)
		}
	}
}

// running reports whether the process is there and no zombie.
func running(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(b), ") Z ")
}
