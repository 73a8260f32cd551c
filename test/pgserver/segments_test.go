package pgserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// segmentOf is the id of the segment that the server's folder names.
func segmentOf(t *testing.T, s *Server) string {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(s.data, "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(strings.Split(string(pid), "\n")[6])[1]
}

func inUse(t *testing.T, id string) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == id {
			return true
		}
	}
	return false
}

func TestKilledServerLeavesNoSharedMemory(t *testing.T) {
	s := Start(t, Options{})
	id := segmentOf(t, s)
	if !inUse(t, id) {
		t.Fatalf("segment %s of a running server is not in use: the test looks at the wrong thing", id)
	}
	s.Kill(t)
	if inUse(t, id) {
		t.Errorf("segment %s is still there after the server was killed", id)
	}
	s.StartAgain(t)
	id = segmentOf(t, s)
	s.close()
	if inUse(t, id) {
		t.Errorf("segment %s is still there after the server was closed", id)
	}
}

func TestOnlyTheSegmentOfADeadServerOfOursIsLeftBehind(t *testing.T) {
	dead := func(int) bool { return false }
	living := func(int) bool { return true }
	old := segment{id: 1, size: segmentSize, creator: 7, owner: 100}
	if !old.leftBehind(100, dead) {
		t.Error("the segment of a dead server is kept")
	}
	other, attached, larger := old, old, old
	other.owner, attached.attached, larger.size = 101, 1, 4096
	for name, g := range map[string]segment{"another user's": other, "attached": attached, "of another size": larger} {
		if g.leftBehind(100, dead) {
			t.Errorf("a segment that is %s would be removed", name)
		}
	}
	if old.leftBehind(100, living) {
		t.Error("the segment of a server that is starting would be removed")
	}
}
