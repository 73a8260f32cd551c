package pgserver

import (
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/walrelay/walrelay/test/ground"
)

// template is a data folder as initdb leaves it. A server is a copy of it, which
// takes a tenth of the time of initdb.
type template struct {
	programs string // folder of bin, lib, share
	data     string
	password string // of the superuser postgres
}

// prepare finds or makes the template for the version and segment size (MiB).
func prepare(v Version, as *account, segmentMB int) (template, error) {
	scratch, err := ground.Scratch()
	if err != nil {
		return template{}, err
	}
	unlock, err := ground.Lock(filepath.Join(scratch, v.String()+".lock"))
	if err != nil {
		return template{}, err
	}
	defer unlock()
	tpl := template{}
	if tpl.programs, err = programs(scratch, v); err != nil {
		return template{}, err
	}
	dir := filepath.Join(scratch, fmt.Sprintf("%s-template-%dMB", filepath.Base(tpl.programs), segmentMB))
	tpl.data = filepath.Join(dir, "data")
	if password, err := os.ReadFile(filepath.Join(dir, "password")); err == nil {
		tpl.password = string(password)
		return tpl, nil
	}
	fresh, err := os.MkdirTemp(scratch, "initdb-")
	if err != nil {
		return template{}, err
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := os.Chmod(fresh, 0o755); err != nil {
		return template{}, err
	}
	tpl.password = rand.Text()
	if err := initdb(tpl, as, fresh, segmentMB); err != nil {
		return template{}, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return template{}, err
	}
	return tpl, os.Rename(fresh, dir)
}

func initdb(tpl template, as *account, dir string, segmentMB int) error {
	passwordFile := filepath.Join(dir, "password")
	data := filepath.Join(dir, "data")
	if err := os.WriteFile(passwordFile, []byte(tpl.password), 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	for _, path := range []string{passwordFile, data} {
		if err := as.own(path); err != nil {
			return err
		}
	}
	cmd := as.command(data, filepath.Join(tpl.programs, "bin", "initdb"),
		"--pgdata="+data, "--username=postgres", "--pwfile="+passwordFile, "--auth=scram-sha-256",
		"--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions", fmt.Sprintf("--wal-segsize=%d", segmentMB))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb of %s: %w\n%s", filepath.Base(tpl.programs), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// copyTree copies files, folders and links, and makes all of them the account's.
func copyTree(from, to string, as *account) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			err = os.Mkdir(target, 0o700)
		case d.Type()&fs.ModeSymlink != 0:
			var link string
			if link, err = os.Readlink(path); err == nil {
				err = os.Symlink(link, target)
			}
		case d.Type().IsRegular():
			err = copyFile(path, target)
		default:
			return nil
		}
		if err != nil {
			return err
		}
		return as.own(target)
	})
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(dst, src); err != nil {
		_ = dst.Close()
		return err
	}
	return dst.Close()
}
