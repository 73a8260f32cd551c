package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/walrelay/walrelay/slot"
)

// recvlogical finds Postgres' own client; empty: there is none. One of another
// version does: the protocol is the same.
func recvlogical() string {
	if path, err := exec.LookPath("pg_recvlogical"); err == nil {
		return path
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pg_recvlogical")
	slices.Sort(found)
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// recvlogical drains with pg_recvlogical into nothing.
func (b *backlog) recvlogical(t *crew, tool, name string) drained {
	args := []string{
		"-d", b.house.PG.URL(b.house.Database), "-S", name, "--start", "--no-loop", "-f", "-", "-E", b.end,
		"-o", "proto_version=1", "-o", "publication_names=" + slot.QuotePublicationName(b.house.Publication),
	}
	if b.messages {
		args = append(args, "-o", "messages=true")
	}
	return b.client(t, exec.Command(tool, args...), name)
}

// raw drains with a loop in Go that reads frames and looks at their kind.
func (b *backlog) raw(t *crew, name string) drained {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, name, b.house.Publication, strconv.Itoa(b.rows), strconv.FormatBool(b.messages))
	cmd.Env = append(os.Environ(), rawURL+"="+b.house.PG.URL(b.house.Database))
	return b.client(t, cmd, name)
}

// client runs a client to its end.
func (b *backlog) client(t *crew, cmd *exec.Cmd, name string) drained {
	var errors bytes.Buffer
	cmd.Stderr = &errors // what goes to Stdout is discarded
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	conn := b.house.PG.Conn(t, b.house.Database)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	client := watchProcess(cmd.Process.Pid)
	ws := awaitWalsender(t, conn, name)
	err := cmd.Wait()
	d := drained{rows: b.rows, took: time.Since(ws.began), before: ws.began.Sub(began)}
	d.walsender, _ = ws.cpu.end()
	_, d.peak = client.end()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd.Path, err, errors.String())
	}
	d.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return d
}
