package mongofake

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The opcodes that the driver uses: OP_QUERY for the first message of a
// connection, OP_MSG for all others.
const (
	opReply = 1
	opQuery = 2004
	opMsg   = 2013
)

// moreToCome is the flag of a message that wants no reply.
const moreToCome = 1 << 1

// message is a command with what its reply has to know.
type message struct {
	command Command
	id      int32
	opcode  int32
	silent  bool
}

var (
	order  = binary.LittleEndian
	errCut = errors.New("the message is cut off")
)

func readMessage(r io.Reader) (message, error) {
	var header [16]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return message{}, err
	}
	length := int(order.Uint32(header[:]))
	if length < len(header) || length > 48<<20 {
		return message{}, fmt.Errorf("a message of %d bytes", length)
	}
	body := make([]byte, length-len(header))
	if _, err := io.ReadFull(r, body); err != nil {
		return message{}, err
	}
	m := message{id: int32(order.Uint32(header[4:])), opcode: int32(order.Uint32(header[12:]))}
	var err error
	switch m.opcode {
	case opMsg:
		err = m.parseMsg(body)
	case opQuery:
		err = m.parseQuery(body)
	default:
		err = fmt.Errorf("opcode %d", m.opcode)
	}
	if err != nil {
		return message{}, err
	}
	elements, err := m.command.Body.Elements()
	if err != nil || len(elements) == 0 {
		return message{}, fmt.Errorf("a command without a name: %w", err)
	}
	m.command.Name = elements[0].Key()
	return m, nil
}

// parseMsg takes flags and sections apart. A checksum, which the driver does not
// send, is not expected.
func (m *message) parseMsg(body []byte) error {
	if len(body) < 4 {
		return errCut
	}
	m.silent = order.Uint32(body)&moreToCome != 0
	rest := body[4:]
	m.command.sequences = map[string][]bson.Raw{}
	for len(rest) > 0 {
		kind := rest[0]
		section, err := cut(&rest, 1)
		if err != nil {
			return err
		}
		if kind == 0 {
			m.command.Body = bson.Raw(section)
			continue
		}
		name, documents, found := bytes.Cut(section[4:], []byte{0})
		if !found {
			return errCut
		}
		for len(documents) > 0 {
			document, err := cut(&documents, 0)
			if err != nil {
				return err
			}
			m.command.sequences[string(name)] = append(m.command.sequences[string(name)], document)
		}
	}
	m.command.Database, _ = m.command.Body.Lookup("$db").StringValueOK()
	return nil
}

// parseQuery reads the old message: flags, collection, skip, limit, query.
func (m *message) parseQuery(body []byte) error {
	if len(body) < 4 {
		return errCut
	}
	name, rest, found := bytes.Cut(body[4:], []byte{0})
	if !found || len(rest) < 8 {
		return errCut
	}
	rest = rest[8:]
	query, err := cut(&rest, 0)
	database, _, _ := bytes.Cut(name, []byte{'.'})
	m.command.Body, m.command.Database = query, string(database)
	return err
}

// cut takes what begins after skip bytes with its own length off the front.
func cut(rest *[]byte, skip int) ([]byte, error) {
	b := *rest
	if len(b) < skip+4 {
		return nil, errCut
	}
	end := skip + int(order.Uint32(b[skip:]))
	if end < skip+5 || end > len(b) {
		return nil, errCut
	}
	*rest = b[end:]
	return b[skip:end], nil
}

func (m message) reply(w io.Writer, document bson.D) error {
	content, err := bson.Marshal(document)
	if err != nil {
		return err
	}
	opcode, prefix := uint32(opMsg), make([]byte, 5) // no flags; a section that is a document
	if m.opcode == opQuery {
		// No flags, no cursor, from document 0, one document.
		opcode, prefix = opReply, make([]byte, 20)
		order.PutUint32(prefix[16:], 1)
	}
	out := make([]byte, 16, 16+len(prefix)+len(content))
	order.PutUint32(out, uint32(cap(out)))
	order.PutUint32(out[8:], uint32(m.id))
	order.PutUint32(out[12:], opcode)
	_, err = w.Write(append(append(out, prefix...), content...))
	return err
}
