package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing/iotest"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/walrelay/walrelay/slot"
)

// rawURL is the variable that makes this program the raw reader: the least that
// a client in Go can do.
const rawURL = "BENCH_RAW_URL"

// drainRaw reads args: slot, publication, number of rows, whether messages are asked for.
func drainRaw(url string, args []string) error {
	want, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	cfg, err := pgconn.ParseConfig(url)
	if err != nil {
		return err
	}
	cfg.RuntimeParams["replication"] = "database"
	// The library must not read ahead of what it hands out: the loop below goes on
	// at the first byte of the stream.
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(iotest.OneByteReader(r), w)
	}
	ctx := context.Background()
	pc, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	plugin := []string{"proto_version '1'", "publication_names '" + slot.QuotePublicationName(args[1]) + "'"}
	if args[3] == "true" {
		plugin = append(plugin, "messages 'true'")
	}
	if err := pglogrepl.StartReplication(ctx, pc, args[0], 0, pglogrepl.StartReplicationOptions{Mode: pglogrepl.LogicalReplication, PluginArgs: plugin}); err != nil {
		return err
	}
	h, err := pc.Hijack()
	if err != nil {
		return err
	}
	defer func() { _ = h.Conn.Close() }()
	seen, err := countRows(h.Conn, want)
	if err == nil && seen != want {
		err = fmt.Errorf("%d rows came, want %d", seen, want)
	}
	return err
}

// countRows reads frames until so many rows or messages have come.
func countRows(r io.Reader, want int) (seen int, err error) {
	buf := make([]byte, 1<<20)
	filled := 0
	for {
		n, err := r.Read(buf[filled:])
		filled += n
		if err != nil {
			return seen, err
		}
		off := 0
		for filled-off >= 5 {
			size := 1 + int(binary.BigEndian.Uint32(buf[off+1:]))
			if size > len(buf) {
				return seen, errors.New("a frame is larger than the buffer")
			}
			if size > filled-off {
				break
			}
			// CopyData 'd', XLogData 'w' with 24 bytes of header, then the message.
			if f := buf[off : off+size]; f[0] == 'd' && f[5] == 'w' && (f[30] == 'I' || f[30] == 'M') {
				seen++
			} else if f[0] == 'E' {
				return seen, fmt.Errorf("the server says: %q", f[5:])
			}
			off += size
		}
		filled = copy(buf, buf[off:filled])
		if seen >= want {
			return seen, nil
		}
	}
}
