package config

// kind is what a node of the file is.
type kind uint8

const (
	empty  kind = iota // null, or nothing after the colon
	text               // a scalar that YAML takes for a string
	number             // a scalar that YAML takes for a number
	truth              // true or false
	list
	table // a mapping
	broken
)

// node is a part of the file after parsing and expansion, or the value of a
// variable or flag.
type node struct {
	kind   kind
	text   string
	hidden bool // came out of ${file:}: must not print
	origin Origin
	items  []*node
	fields []field
}

// field is one key of a mapping.
type field struct {
	key    string
	origin Origin // of the key
	value  *node
	merged bool // came by a merge key; a key of the mapping itself wins
}

func (k kind) String() string {
	switch k {
	case empty:
		return "nothing"
	case number:
		return "a number"
	case truth:
		return "true or false"
	case list:
		return "a list"
	case table:
		return "a mapping"
	default:
		return "text"
	}
}
