package ground

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CacheVariable names the environment variable that moves the cache.
const CacheVariable = "WALRELAY_TEST_CACHE"

// CacheDirs lists the folders that may hold fetched files, best first: the one
// the environment names, else .cache beside go.mod, the user's own cache, and
// the scratch folder. Those that are not writable can still be read from.
func CacheDirs() ([]string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		abs, err := filepath.Abs(dir)
		return []string{abs}, err
	}
	var dirs []string
	if root, err := RepositoryRoot(); err == nil {
		dirs = append(dirs, filepath.Join(root, ".cache"))
	}
	if dir, err := os.UserCacheDir(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "walrelay-test"))
	}
	scratch, err := Scratch()
	if err != nil {
		return nil, err
	}
	return append(dirs, filepath.Join(scratch, "cache")), nil
}

// FindCached returns the first folder of the cache that holds the file name.
func FindCached(name string) (dir string, found bool) {
	dirs, err := CacheDirs()
	if err != nil {
		return "", false
	}
	for _, dir := range dirs {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		_ = f.Close()
		return dir, true
	}
	return "", false
}

// WritableCache returns the first folder of the cache that can be written to,
// and makes it where it is missing.
func WritableCache() (string, error) {
	dirs, err := CacheDirs()
	if err != nil {
		return "", err
	}
	var refused []error
	for _, dir := range dirs {
		if err := probe(dir); err != nil {
			refused = append(refused, err)
			continue
		}
		return dir, nil
	}
	return "", fmt.Errorf("no folder to keep fetched files in, set %s: %w", CacheVariable, errors.Join(refused...))
}

func probe(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-")
	if err != nil {
		return err
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// RepositoryRoot walks up from the working directory to the folder of go.mod.
func RepositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.mod above %s", dir)
		}
	}
}
