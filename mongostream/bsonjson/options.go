package bsonjson

// Format is how documents and arrays are written.
type Format uint8

// The formats; see the package page.
const (
	Plain Format = iota
	Relaxed
	Canonical
	BSON
)

// ContentType is the media type of what the format writes.
func (f Format) ContentType() string {
	switch f {
	case Relaxed, Canonical:
		return "application/ejson"
	case BSON:
		return "application/bson"
	default:
		return "application/json"
	}
}

// LegacyUUID is whose byte order UUIDs of binary subtype 3 are in: the subtype does
// not say, and each driver had its own.
type LegacyUUID uint8

// The byte orders.
const (
	// LegacyRaw leaves the question open: base64, as other binary.
	LegacyRaw LegacyUUID = iota
	// LegacyPython is the order of the text.
	LegacyPython
	// LegacyJava turns each half around.
	LegacyJava
	// LegacyCSharp turns the first three groups around.
	LegacyCSharp
)

// NonFinite is what becomes of NaN and infinities in the plain form: JSON has none.
type NonFinite uint8

// The policies.
const (
	// NonFiniteText writes "NaN", "Infinity" or "-Infinity", in quotes.
	NonFiniteText NonFinite = iota
	// NonFinitePoison refuses the document.
	NonFinitePoison
)

// InvalidText is what becomes of strings and names that are no UTF-8, which
// servers store as they came, and which JSON cannot hold.
type InvalidText uint8

// The policies.
const (
	// InvalidPoison refuses the document.
	InvalidPoison InvalidText = iota
	// InvalidReplace writes U+FFFD for each byte that fits nowhere.
	InvalidReplace
)

// Options are the choices of an [Encoder]; the zero value is the default.
type Options struct {
	Format Format
	// InvalidText is for all formats but BSON, which leaves text alone.
	InvalidText InvalidText
	// LegacyUUID, NonFinite, Int64Text and DecimalNumber are for the plain format.
	LegacyUUID LegacyUUID
	NonFinite  NonFinite
	// Int64Text writes every int64 in quotes.
	Int64Text bool
	// DecimalNumber writes a Decimal128 as a number, with all its digits, instead of
	// in quotes. Consumers that read numbers as doubles lose digits.
	DecimalNumber bool
}
