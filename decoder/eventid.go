package decoder

import (
	"crypto/sha1" //nolint:gosec // RFC 9562 prescribes SHA-1 for UUIDs of version 5; nothing secret is hashed
	"strconv"

	"github.com/google/uuid"

	"github.com/walrelay/walrelay/event"
)

// messageNamespace is for ever: another value would give redelivered messages new
// ids. It is the UUIDv5, in the namespace of URLs, of
// https://github.com/walrelay/walrelay/decoder#message-event-id
var messageNamespace = uuid.MustParse("eea87fec-472e-5fc8-a521-9a668bb34bb4")

// appendMessageID appends the event id of a logical message that brought none: the
// UUIDv5 of
//
//	<system identifier>/<commit LSN as Postgres prints it>/<ordinal in decimal>
//
// so that a redelivery has the same id, and no two messages of a cluster do.
// uuid.NewSHA1 gives the same; this one does not allocate.
func appendMessageID(dst []byte, system string, commit event.LSN, ordinal uint32) []byte {
	var buf [128]byte
	name := append(buf[:0], messageNamespace[:]...)
	name = append(name, system...)
	name = append(name, '/')
	name, _ = commit.AppendText(name)
	name = append(name, '/')
	name = strconv.AppendUint(name, uint64(ordinal), 10)
	sum := sha1.Sum(name) //nolint:gosec // as above
	id := [16]byte(sum[:16])
	id[6] = id[6]&0x0f | 0x50
	id[8] = id[8]&0x3f | 0x80
	return appendUUID(dst, id)
}
