package router

import (
	"fmt"

	"github.com/walrelay/walrelay/event"
)

// maxTopicLen is Kafka's limit (org.apache.kafka.common.internals.Topic).
const maxTopicLen = 249

// maxTopics bounds the remembered names. Beyond it a name costs an allocation
// per event, and memory stays flat however many names the data invents.
const maxTopics = 10_000

// checkTopic says why Kafka refuses the name; empty when it does not.
func checkTopic[T ~string | ~[]byte](name T) string {
	switch {
	case len(name) == 0:
		return "the topic name is empty"
	case len(name) > maxTopicLen:
		return fmt.Sprintf("topic %q… has a name of %d characters: Kafka allows %d", string(name[:32]), len(name), maxTopicLen)
	case string(name) == ".", string(name) == "..":
		return fmt.Sprintf("topic %q is a name that Kafka refuses", string(name))
	}
	if i := illegalByte(name); i >= 0 {
		return fmt.Sprintf("topic %q contains %q: Kafka allows letters, digits, dot, underscore and hyphen",
			string(name), name[i])
	}
	return ""
}

// illegalByte is the index of the first byte that no topic name may hold, or -1.
func illegalByte[T ~string | ~[]byte](name T) int {
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return i
		}
	}
	return -1
}

// topics remembers the names that were found legal, as strings.
type topics map[string]string

// name returns the topic as a string, or why it is none.
func (t topics) name(b []byte) (string, *event.Error) {
	if s, ok := t[string(b)]; ok {
		return s, nil
	}
	if why := checkTopic(b); why != "" {
		return "", poison(AnchorTopic, "%s", why)
	}
	s := string(b)
	if len(t) < maxTopics {
		t[s] = s
	}
	return s, nil
}
