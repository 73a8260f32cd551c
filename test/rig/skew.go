package rig

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/walrelay/walrelay/test/ground"
)

var (
	skewOnce   sync.Once
	skewBinary string
	skewErr    error
)

// Skewed returns the house with a relay whose wall clock is wrong by so much; its
// monotonic clock is right. A program in Go asks the kernel past any library that
// could be put before it, and a namespace has no wall clock of its own: the program
// is built with another time.Now.
func (h *House) Skewed(t testing.TB, by time.Duration) *House {
	t.Helper()
	skewOnce.Do(func() { skewBinary, skewErr = buildSkewed() })
	if skewErr != nil {
		t.Fatal(skewErr)
	}
	other := *h
	other.Program = skewBinary
	other.Env = append(other.Env, skewVariable+"="+strconv.Itoa(int(by.Seconds())))
	return &other
}

const skewVariable = "WALRELAY_TEST_CLOCK_SKEW"

// skewed is a further file of package time; seconds comes from the environment.
const skewed = `package time

import "syscall"

var skew = func() (n int64) {
	text, _ := syscall.Getenv("` + skewVariable + `")
	sign := int64(1)
	for i := range len(text) {
		if text[i] == '-' {
			sign = -1
			continue
		}
		n = n*10 + int64(text[i]-'0')
	}
	return sign * n
}()
`

func buildSkewed() (string, error) {
	root, err := ground.RepositoryRoot()
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	pkg := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	source, err := os.ReadFile(filepath.Join(pkg, "time.go"))
	if err != nil {
		return "", err
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), now) != 1 {
		return "", fmt.Errorf("time.Now in %s is not as it was: look at buildSkewed", pkg)
	}
	dir, err := os.MkdirTemp("", "walrelay-skew-")
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(pkg, "time.go"): filepath.Join(dir, "time.go"),
		filepath.Join(pkg, "skew.go"): filepath.Join(dir, "skew.go"),
	}})
	if err != nil {
		return "", err
	}
	for name, content := range map[string]string{
		"time.go":      strings.Replace(string(source), now, now+"\tsec += skew\n", 1),
		"skew.go":      skewed,
		"overlay.json": string(overlay),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	program := filepath.Join(dir, "walrelay")
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./cmd/walrelay")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building walrelay with a skewed clock: %w\n%s", err, out)
	}
	return program, nil
}
