package inbox

import "strconv"

// Record is one consumed record, in terms of no particular client. Its slices are
// read while it is handled and never changed or kept.
type Record struct {
	// Topic, Partition and Offset are its place in the broker. An empty Topic means
	// that it has none, for instance because it did not come from Kafka.
	Topic     string
	Partition int32
	Offset    int64
	// Key decides the partition and nothing here: it is never an id.
	Key     []byte
	Value   []byte
	Headers []Header
}

// Header is one header of a record.
type Header struct {
	Key   string
	Value []byte
}

// Header returns the value of the last header of that name. Absent and empty are
// different: ok is false only for the first.
func (r *Record) Header(name string) (value string, ok bool) {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key == name {
			return string(r.Headers[i].Value), true
		}
	}
	return "", false
}

// Place is topic:partition:offset, or empty when the record has no place in a broker.
func (r *Record) Place() string {
	if r.Topic == "" || r.Partition < 0 || r.Offset < 0 {
		return ""
	}
	return r.Topic + ":" + strconv.Itoa(int(r.Partition)) + ":" + strconv.FormatInt(r.Offset, 10)
}
