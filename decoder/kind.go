package decoder

// Kind is the first byte of a pgoutput message.
type Kind byte

// The kinds, as in the Postgres manual, "Logical Replication Message Formats".
const (
	KindBegin            Kind = 'B'
	KindCommit           Kind = 'C'
	KindOrigin           Kind = 'O'
	KindRelation         Kind = 'R'
	KindType             Kind = 'Y'
	KindInsert           Kind = 'I'
	KindUpdate           Kind = 'U'
	KindDelete           Kind = 'D'
	KindTruncate         Kind = 'T'
	KindMessage          Kind = 'M'
	KindStreamStart      Kind = 'S'
	KindStreamStop       Kind = 'E'
	KindStreamCommit     Kind = 'c'
	KindStreamAbort      Kind = 'A'
	KindBeginPrepare     Kind = 'b'
	KindPrepare          Kind = 'P'
	KindCommitPrepared   Kind = 'K'
	KindRollbackPrepared Kind = 'r'
	KindStreamPrepare    Kind = 'p'
)

// place says where a kind may stand with respect to Stream Start and Stream Stop.
type place uint8

const (
	anywhere place = iota
	insideOnly
	outsideOnly
)

// kinds holds what is known of each kind before its body is read; an empty name
// marks a byte that is no kind.
//
// Stream Abort counts as protocol 1, since Postgres 18 sends it also to clients
// that never asked for streaming.
var kinds = [256]struct {
	name     string
	protocol uint8 // the first protocol version that has it
	place    place
}{
	KindBegin:            {"Begin", 1, outsideOnly},
	KindCommit:           {"Commit", 1, outsideOnly},
	KindOrigin:           {"Origin", 1, anywhere},
	KindRelation:         {"Relation", 1, anywhere},
	KindType:             {"Type", 1, anywhere},
	KindInsert:           {"Insert", 1, anywhere},
	KindUpdate:           {"Update", 1, anywhere},
	KindDelete:           {"Delete", 1, anywhere},
	KindTruncate:         {"Truncate", 1, anywhere},
	KindMessage:          {"Message", 1, anywhere},
	KindStreamAbort:      {"Stream Abort", 1, outsideOnly},
	KindStreamStart:      {"Stream Start", 2, outsideOnly},
	KindStreamStop:       {"Stream Stop", 2, insideOnly},
	KindStreamCommit:     {"Stream Commit", 2, outsideOnly},
	KindBeginPrepare:     {"Begin Prepare", 3, outsideOnly},
	KindPrepare:          {"Prepare", 3, outsideOnly},
	KindCommitPrepared:   {"Commit Prepared", 3, outsideOnly},
	KindRollbackPrepared: {"Rollback Prepared", 3, outsideOnly},
	KindStreamPrepare:    {"Stream Prepare", 3, outsideOnly},
}

// String is the name in the Postgres manual.
func (k Kind) String() string {
	if n := kinds[k].name; n != "" {
		return n
	}
	return "unknown kind"
}
