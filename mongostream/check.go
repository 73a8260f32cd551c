package mongostream

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// Check looks at every precondition of a source and reports each, the good ones
// too. It changes nothing. What depends on a connection that cannot be had is left out.
func Check(ctx context.Context, o Options) []event.Finding {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return []event.Finding{event.Explained("options", "cannot be used", "usable", asError(err))}
	}
	// The answers are many; each is short.
	ctx, cancel := context.WithTimeout(ctx, 3*o.WireTimeout)
	defer cancel()
	client, err := Connect(ctx, o)
	if err != nil {
		return []event.Finding{event.Explained("server", "no connection", "a connection to the primary", asError(err))}
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	v, err := takeInventory(ctx, client, &o)
	if err != nil {
		return []event.Finding{event.Explained("server", "no answer", "answers about itself", asError(err))}
	}
	findings := v.serverFindings(&o)
	if f := transportFinding(&o); f != nil {
		findings = append(findings, *f)
	}
	findings = append(findings, v.collectionFindings(&o)...)
	findings = append(findings, v.rightsFindings(&o)...)
	findings = append(findings, v.indexFindings(&o)...)
	findings = append(findings, v.bookFindings(&o)...)
	if o.polls() || v.standalone() {
		return findings
	}
	return append(findings, v.streamFindings(ctx, client, &o)...)
}

// streamFindings are about the stream's place in the log.
func (v *inventory) streamFindings(ctx context.Context, client *mongo.Client, o *Options) (findings []event.Finding) {
	findings = append(findings, v.majorityFinding())
	log, err := readOplog(ctx, client)
	findings = append(findings, oplogFinding(log, err, o.MinOplogWindow))
	if o.writesRecord() && v.has(o.SourcesCollection()) {
		findings = append(findings, o.bearable(v.positionFindings(ctx, client, o, log, err == nil))...)
	}
	if o.Ordered {
		findings = append(findings, visibilityFinding(ctx, client))
	}
	return findings
}

func (v *inventory) serverFindings(o *Options) []event.Finding {
	findings := []event.Finding{event.Fine("server", fmt.Sprintf("MongoDB %s at %s, replica set %s", v.Version, orElse(v.Member, "a router"), orElse(v.Set, "none")), "reachable")}
	const setting, needs = "replica set", "one, of one member at least"
	switch {
	case o.polls():
	case v.standalone():
		e := kindStandalone.answer(nil)
		findings = append(findings, o.bearable([]event.Finding{event.Failing(setting, "none: a standalone server", needs, e)})...)
	default:
		findings = append(findings, event.Fine(setting, orElse(v.Set, "behind a router"), needs))
	}
	if major(v.Version) < 6 {
		findings = append(findings, event.Warned("version", v.Version, "6.0 or later", "upgrade when you can: 4.4 and 5.0 should work and are not tested; 6.0 filters the stream much more cheaply"))
	} else {
		findings = append(findings, event.Fine("version", v.Version, "6.0 or later"))
	}
	return findings
}

func major(version string) int {
	n := 0
	_, _ = fmt.Sscanf(version, "%d", &n)
	return n
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// transportFinding warns of a password, or documents, that cross a network in the clear.
func transportFinding(o *Options) *event.Finding {
	co, err := o.ClientOptions()
	if err != nil {
		return nil
	}
	remote := ""
	for _, host := range co.Hosts {
		if !isLocal(host) {
			remote = host
			break
		}
	}
	switch {
	case remote == "":
		return nil
	case co.TLSConfig == nil:
		f := event.Warned("tls", remote+" is reached without encryption", "tls=true", "switch TLS on in the server and write tls=true, with tlsCAFile where the certificate is not publicly signed")
		return &f
	case co.TLSConfig.InsecureSkipVerify:
		f := event.Warned("tls", "the certificate of "+remote+" is not verified", "a verified certificate", "take tlsInsecure, tlsAllowInvalidCertificates and tlsAllowInvalidHostnames out of the URL, and give the right tlsCAFile")
		return &f
	}
	f := event.Fine("tls", "encrypted and verified", "tls=true")
	return &f
}

func isLocal(host string) bool {
	name := host
	if at := strings.LastIndexByte(host, ':'); at >= 0 && !strings.HasSuffix(host, "]") {
		name = host[:at]
	}
	return name == "localhost" || strings.HasPrefix(name, "127.") || name == "[::1]" || strings.HasSuffix(name, ".sock")
}

func (v *inventory) collectionFindings(o *Options) []event.Finding {
	setting, needs := "collection "+o.Namespace(), "there"
	if e := v.unfit(o); e != nil {
		return []event.Finding{event.Explained(setting, "", needs, e)}
	}
	if !v.has(o.Collection) {
		return []event.Finding{event.Failing(setting, "missing", needs, precondition(AnchorNotInitialised,
			fmt.Sprintf("collection %s does not exist, or the user may not see it", o.Namespace()), "run 'walrelay init': it makes what is missing and leaves what is there"))}
	}
	is := "there"
	if c := v.collections[o.Collection]; v.typed && c.Options.Capped {
		return []event.Finding{event.Warned(setting, "capped", "not capped", "use an ordinary collection: a capped one drops documents that were not published, as new ones come")}
	}
	return []event.Finding{event.Fine(setting, is, needs)}
}

// unfit says why the collection can be no outbox.
func (v *inventory) unfit(o *Options) *event.Error {
	c, there := v.collections[o.Collection]
	if !there || !v.typed || c.Type == "" || c.Type == "collection" {
		return nil
	}
	return precondition(AnchorCollection, fmt.Sprintf("collection %s is a %s and must be an ordinary one: nothing that is inserted through it can be followed, or marked", o.Namespace(), c.Type),
		"give the collection that the application inserts into")
}

func (v *inventory) rightsFindings(o *Options) []event.Finding {
	if v.user == "" {
		return []event.Finding{event.Warned("rights", "nobody is logged in", "a user of walrelay's own", "switch on authentication in the server: whoever reaches it may do everything")}
	}
	finding := func(collection string, actions []string, remedy string) event.Finding {
		setting, needs := "rights on "+collection, strings.Join(actions, ", ")
		if lack := v.lacking(o.Database, collection, actions); len(lack) > 0 {
			is := "without " + strings.Join(lack, ", ")
			return event.Failing(setting, is, needs, precondition(AnchorRights, fmt.Sprintf("user %s has no right to %s on %s.%s", v.user, strings.Join(lack, ", "), o.Database, collection), remedy))
		}
		return event.Fine(setting, needs, needs)
	}
	findings := []event.Finding{finding(o.Collection, o.outboxActions(), remedyGrant(o.Database, o.Collection, o.outboxActions()))}
	for _, book := range o.books() {
		findings = append(findings, finding(book, o.bookActions(), remedyGrant(o.Database, book, o.bookActions())))
	}
	return findings
}

func remedyGrant(database, collection string, actions []string) string {
	return fmt.Sprintf(`grant it to a role of the user: db.getSiblingDB("admin").grantPrivilegesToRole("walrelay", [{resource: {db: %s, collection: %s}, actions: [%s]}])`,
		quoteJS(database), quoteJS(collection), quoteAll(actions))
}

func (v *inventory) indexFindings(o *Options) (findings []event.Finding) {
	for _, name := range v.blind {
		if name == o.Collection || v.has(name) {
			findings = append(findings, event.Warned("indexes of "+name, "may not be listed", "known", "grant the action listIndexes on the collection, or see to it that what 'walrelay init --print' shows is there"))
		}
	}
	list := append(o.outboxIndexes(), o.bookIndexes()...)
	for _, collection := range []string{o.Collection, o.ParkedCollection()} {
		there, seen := v.indexes[collection]
		if !seen || !v.has(collection) {
			continue
		}
		lack := missing(ofCollection(list, collection), v.indexes)
		for _, x := range lack {
			findings = append(findings, event.Warned("index on "+collection, "none on "+x.describe(), "there", "run 'walrelay init'; without it "+x.purpose))
		}
		if len(lack) == 0 && len(ofCollection(list, collection)) > 0 {
			findings = append(findings, event.Fine("indexes of "+collection, fmt.Sprintf("%d of %d", len(ofCollection(list, collection)), len(ofCollection(list, collection))), "there"))
		}
		findings = append(findings, expiryFindings(o, collection, there)...)
	}
	return findings
}

// expiryFindings warn of an index that deletes documents, published or not.
func expiryFindings(o *Options, collection string, there []indexThere) (findings []event.Finding) {
	for _, x := range there {
		if x.Expires == nil || len(x.Key) == 0 || collection == o.Collection && x.Key[0].Key == o.Schema.Columns[event.PublishedAt] {
			continue
		}
		findings = append(findings, event.Warned("index "+x.Name, fmt.Sprintf("deletes documents by %s after %v", x.Key[0].Key, time.Duration(*x.Expires)*time.Second), "none that deletes what is not published",
			"drop it, and use retention.keep_published, or an index that expires by published_at"))
	}
	return findings
}

func ofCollection(list []index, collection string) (some []index) {
	for _, x := range list {
		if x.collection == collection {
			some = append(some, x)
		}
	}
	return some
}

// describe names an index for people.
func (x index) describe() string {
	s := "{" + strings.Join(x.keys, ", ") + "}"
	switch {
	case x.unique:
		s = "unique " + s
	case x.sparse:
		s = "sparse " + s
	case x.partial != nil:
		s += fmt.Sprintf(" where %s is %q", x.partial[0].Key, x.partial[0].Value)
	}
	return s
}

func (v *inventory) bookFindings(o *Options) []event.Finding {
	if !o.keepsBooks() {
		return []event.Finding{event.Warned("bookkeeping", "none", "collections of walrelay's own",
			"leave bookkeeping out of the configuration: without it each start begins at the present, and what came before is not published")}
	}
	var findings []event.Finding
	for _, name := range o.books() {
		setting, needs := "bookkeeping "+name, "there"
		if v.has(name) {
			findings = append(findings, event.Fine(setting, "there", needs))
			continue
		}
		findings = append(findings, event.Failing(setting, "missing", needs, precondition(AnchorNotInitialised,
			fmt.Sprintf("collection %s.%s does not exist, or the user may not see it", o.Database, name), "run 'walrelay init': it makes what is missing and leaves what is there")))
	}
	return findings
}
