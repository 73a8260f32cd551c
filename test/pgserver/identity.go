package pgserver

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// newIdentity gives a copied data folder a system identifier of its own. Two
// servers that share one would look like one server to a relay that has to tell
// them apart.
//
// The identifier stands at two places, in this machine's byte order: the first 8
// bytes of pg_control (catalog/pg_control.h: ControlFileData), which a CRC-32C at
// its end protects, and the long header of each WAL segment's first page
// (access/xlog_internal.h: XLogLongPageHeaderData), behind a short header of 24
// bytes. initdb leaves one segment.
func newIdentity(data string) error {
	// As in BootStrapXLOG: seconds in the upper half, then bits that differ.
	id := uint64(time.Now().Unix())<<32 | uint64(rand.Uint32())

	control := filepath.Join(data, "global", "pg_control")
	b, err := os.ReadFile(control)
	if err != nil {
		return err
	}
	at, ok := findCRC(b)
	if !ok {
		return fmt.Errorf("%s: no CRC-32C found in its first 512 bytes", control)
	}
	binary.NativeEndian.PutUint64(b, id)
	binary.NativeEndian.PutUint32(b[at:], crc32.Checksum(b[:at], castagnoli))
	if err := os.WriteFile(control, b, 0o600); err != nil {
		return err
	}

	segments, err := filepath.Glob(filepath.Join(data, "pg_wal", "0*"))
	if err != nil {
		return err
	}
	const sysid = 24 // SizeOfXLogShortPHD
	for _, segment := range segments {
		f, err := os.OpenFile(segment, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, id), sysid)
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// findCRC finds the checksum of pg_control, whose place differs between
// versions: it is the 4 bytes that hold the checksum of all before them.
func findCRC(b []byte) (at int, ok bool) {
	for at := 64; at+4 <= min(len(b), 512); at += 4 {
		if binary.NativeEndian.Uint32(b[at:]) == crc32.Checksum(b[:at], castagnoli) {
			return at, true
		}
	}
	return 0, false
}
