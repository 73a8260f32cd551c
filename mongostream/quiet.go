package mongostream

import (
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/walrelay/walrelay/event"
)

// longest is how many bytes of a driver's or server's message are shown.
const longest = 400

// quiet is a cause whose text is fit for a log: the driver's own carries whole topologies,
// and of a refused write the document's values.
type quiet struct{ err error }

func (q quiet) Unwrap() error { return q.err }

func (q quiet) Error() string {
	var selection topology.ServerSelectionError
	if errors.As(q.err, &selection) {
		return hosts(selection)
	}
	code, name, message, ok := serverMessage(q.err)
	if !ok {
		return cut(q.err.Error(), longest)
	}
	message = withoutValues(message)
	if name != "" {
		return cut(fmt.Sprintf("%s (%s, code %d)", message, name, code), longest)
	}
	return cut(fmt.Sprintf("%s (code %d)", message, code), longest)
}

// withoutValues cuts a message where it begins to quote a command or a document. Of a
// command that was not allowed the name and the collection are kept: {find: "outbox", …
func withoutValues(message string) string {
	before, quoted, found := strings.Cut(message, "{")
	if !found {
		return message
	}
	if strings.HasSuffix(before, "execute command ") {
		first, _, _ := strings.Cut(quoted, ",")
		return before + strings.Trim(first, " }")
	}
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(before), "dup key:"))
}

// serverMessage finds what the server said first; details, which hold document values, are left out.
func serverMessage(err error) (code int, name, message string, ok bool) {
	var (
		command mongo.CommandError
		write   mongo.WriteException
		bulk    mongo.BulkWriteException
		concern *mongo.WriteConcernError
	)
	switch {
	case errors.As(err, &write):
		if len(write.WriteErrors) > 0 {
			return write.WriteErrors[0].Code, "", write.WriteErrors[0].Message, true
		}
		concern = write.WriteConcernError
	case errors.As(err, &bulk):
		if len(bulk.WriteErrors) > 0 {
			return bulk.WriteErrors[0].Code, "", bulk.WriteErrors[0].Message, true
		}
		concern = bulk.WriteConcernError
	case errors.As(err, &command):
		return int(command.Code), command.Name, command.Message, true
	}
	if concern == nil {
		return 0, "", "", false
	}
	return concern.Code, concern.Name, concern.Message, true
}

// unselected is the error of a driver that found no member to talk to in time.
func unselected(s topology.ServerSelectionError) *event.Error {
	reachable := false
	for _, server := range s.Desc.Servers {
		reachable = reachable || server.LastError == nil && server.Kind != 0
	}
	if reachable {
		return retry(AnchorNoPrimary, "members of the replica set answer, but none of them is the primary",
			"wait for the election; if it does not end, see with rs.status() why no member has a majority, and that replicaSet in the URL is the set's name")
	}
	return retry(AnchorUnreachable, "no server can be reached", "check the hosts in the URL, that they run, and that the network lets us through")
}

// hosts says how each host of the set was seen last.
func hosts(s topology.ServerSelectionError) string {
	if len(s.Desc.Servers) == 0 {
		return "no host is known"
	}
	var b strings.Builder
	for i, server := range s.Desc.Servers {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(server.Addr.String())
		if server.LastError != nil {
			b.WriteString(" (" + cut(server.LastError.Error(), 120) + ")")
		} else {
			b.WriteString(" (" + server.Kind.String() + ")")
		}
	}
	return cut(b.String(), longest)
}
