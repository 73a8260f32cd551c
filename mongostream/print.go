package mongostream

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Print writes everything that init makes as one script for mongosh, for people whose
// database is not walrelay's to change. It asks no server.
//
// The position alone is left to 'walrelay init', which takes no more rights than the role has: only the
// server can say where its log ends.
func Print(w io.Writer, o Options) error {
	o = o.WithDefaults()
	s := script{w: w}
	s.comment("walrelay init for source %s (schema %s)", o.Source, o.Schema.Preset)
	s.comment("Run it in mongosh as a user who may do all this, on the primary. What is there already stays as it is.")
	s.statement("db = db.getSiblingDB(" + quoteJS(o.Database) + ")")
	indexes := append(o.outboxIndexes(), o.bookIndexes()...)
	for i, name := range append([]string{o.Collection}, o.books()...) {
		if i == 0 {
			s.section("Outbox collection %s.", o.Namespace())
		} else if i == 1 {
			s.section("walrelay's own bookkeeping.")
		}
		s.statement(fmt.Sprintf("if (!db.getCollectionNames().includes(%s)) %s", quoteJS(name), createJS(name)))
		for _, x := range ofCollection(indexes, name) {
			s.comment("Without it %s.", x.purpose)
			s.statement(x.createJS())
		}
	}
	s.section("What the role may do. Grant it to the user of the relay.")
	s.statement(o.roleJS())
	s.comment("db.getSiblingDB(\"admin\").createUser({user: \"walrelay\", pwd: passwordPrompt(), roles: [%s]})", quoteJS(roleName))
	if o.writesRecord() {
		s.section("The position. Run 'walrelay init' as the relay's user: everything else is there then, and it only makes the position, at the present end of the log.")
	}
	return s.err
}

const roleName = "walrelay"

// roleJS makes a role with what the relay needs and, last, with what lets it warn in time.
func (o *Options) roleJS() string {
	var b strings.Builder
	privilege := func(database, collection string, actions []string) {
		fmt.Fprintf(&b, "  {resource: {db: %s, collection: %s}, actions: [%s]},\n", quoteJS(database), quoteJS(collection), quoteAll(actions))
	}
	b.WriteString("db.getSiblingDB(\"admin\").createRole({role: " + quoteJS(roleName) + ", roles: [], privileges: [\n")
	actions := o.outboxActions()
	if !slices.Contains(actions, "listIndexes") {
		actions = append(actions, "listIndexes")
	}
	privilege(o.Database, o.Collection, actions)
	for _, book := range o.books() {
		privilege(o.Database, book, append(o.bookActions(), "listIndexes"))
	}
	b.WriteString("  // The rest the relay can do without: to check kinds of collections, and to warn before the position is lost.\n")
	privilege(o.Database, "", []string{"listCollections"})
	if !o.polls() {
		privilege("local", "oplog.rs", []string{"find", "collStats"})
	}
	if o.Ordered && !o.polls() {
		b.WriteString("  // To see open transactions: without it each event waits for order.transaction.\n")
		b.WriteString("  {resource: {cluster: true}, actions: [\"inprog\"]},\n")
	}
	b.WriteString("]})")
	return b.String()
}

type script struct {
	w        io.Writer
	sections int
	err      error
}

func (s *script) write(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, text)
	}
}

func (s *script) comment(format string, a ...any) {
	// A line break in a name would end the comment.
	s.write("// " + strings.Join(strings.Fields(fmt.Sprintf(format, a...)), " ") + "\n")
}

func (s *script) section(format string, a ...any) {
	s.write("\n")
	s.sections++
	s.comment("%d. "+format, append([]any{s.sections}, a...)...)
}

func (s *script) statement(js string) { s.write(js + ";\n") }
