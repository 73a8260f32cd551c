package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/walrelay/walrelay/test/ground"
)

var (
	buildOnce sync.Once
	binary    string
	buildErr  error
)

// Binary builds walrelay once per test process and returns the path of the
// program. WALRELAY_TEST_BINARY names one that was built before.
func Binary(t testing.TB) string {
	t.Helper()
	buildOnce.Do(func() {
		if binary = os.Getenv("WALRELAY_TEST_BINARY"); binary != "" {
			return
		}
		dir, err := os.MkdirTemp("", "walrelay-rig-")
		if err != nil {
			buildErr = err
			return
		}
		binary = filepath.Join(dir, "walrelay")
		cmd := exec.Command("go", "build", "-o", binary, "./cmd/walrelay")
		if cmd.Dir, buildErr = ground.RepositoryRoot(); buildErr != nil {
			return
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			buildErr = fmt.Errorf("building walrelay: %w\n%s", err, out)
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return binary
}

// Cleanup removes what was built; for TestMain.
func Cleanup() {
	if skewBinary != "" {
		_ = os.RemoveAll(filepath.Dir(skewBinary))
	}
	if binary != "" && os.Getenv("WALRELAY_TEST_BINARY") == "" {
		_ = os.RemoveAll(filepath.Dir(binary))
	}
}
