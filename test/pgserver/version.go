package pgserver

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Version is a major version of Postgres, with one pinned release each.
type Version int

// The versions.
const (
	V15 Version = 15
	V16 Version = 16
	V17 Version = 17
	V18 Version = 18
)

// Versions lists all, oldest first; for tests that run against each.
var Versions = []Version{V15, V16, V17, V18}

var releases = map[Version]string{V15: "15.19.0", V16: "16.15.0", V17: "17.11.0", V18: "18.6.0"}

func (v Version) String() string { return fmt.Sprintf("pg%d", int(v)) }

// Release is the pinned release, for instance 18.6.0.
func (v Version) Release() string { return releases[v] }

// variable names the environment variable that points Shared at an existing server.
func (v Version) variable() string { return fmt.Sprintf("WALRELAY_TEST_PG%d", int(v)) }

// archive is the name under which embedded-postgres keeps the release in its cache.
func (v Version) archive() (string, error) {
	if releases[v] == "" {
		return "", fmt.Errorf("no pinned release of Postgres %d, there are %v", int(v), Versions)
	}
	arch := runtime.GOARCH
	if arch == "arm64" {
		arch = "arm64v8"
	}
	if _, err := os.Stat("/etc/alpine-release"); err == nil {
		arch += "-alpine"
	}
	return strings.Join([]string{"embedded-postgres-binaries", runtime.GOOS, arch, releases[v]}, "-") + ".txz", nil
}
