package mongostream

import (
	"net/url"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// What is set unless the URL says otherwise: with the driver's own defaults (30 s, 10 s) a host
// that hangs is noticed after more than a minute.
const (
	connectTimeout    = 2 * time.Second
	heartbeatInterval = time.Second
	selectionTimeout  = 10 * time.Second
)

const remedyURL = "write mongodb://user:password@host1:27017,host2:27017/?replicaSet=rs0 with %-escapes for special characters in user and password, or mongodb+srv://user:password@name/"

// ClientOptions reads the URL. Errors say nothing of the URL itself: it holds a password.
//
// Writes are majority writes and reads go to the primary, whatever the URL says: a
// position that a failover takes back would be no position. There is no time limit over
// all operations (timeoutMS is refused): the driver applies it to a stream's iteration, too, and a
// stream that ran into it is dead for ever, with its cursor left open on the server.
func (o *Options) ClientOptions() (*options.ClientOptions, error) {
	if err := o.timeless(); err != nil {
		return nil, err
	}
	c := options.Client().ApplyURI(o.URL) // which asks DNS where the URL is one of mongodb+srv
	if err := c.Validate(); err != nil {
		why := withoutURL(err)
		if why == unknownName {
			return nil, retry(AnchorUnreachable, "connecting failed: "+why, "check the name in the URL, and that DNS answers here")
		}
		return nil, usage("the URL cannot be read: "+why, remedyURL)
	}
	if c.ConnectTimeout == nil {
		c.SetConnectTimeout(connectTimeout)
	}
	if c.HeartbeatInterval == nil {
		c.SetHeartbeatInterval(heartbeatInterval)
	}
	if c.ServerSelectionTimeout == nil {
		c.SetServerSelectionTimeout(selectionTimeout)
	}
	if c.AppName == nil && o.AppName != "" {
		c.SetAppName(o.AppName)
	}
	c.SetWriteConcern(writeconcern.Majority()).SetReadPreference(readpref.Primary()).SetReadConcern(readconcern.Majority())
	c.SetRetryReads(true).SetRetryWrites(true)
	return c, nil
}

func (o *Options) timeless() error {
	if _, given := queryOptions(o.URL)["timeoutms"]; given {
		return usage("the URL sets timeoutMS, which would end a change stream for good whenever a quiet time or a long scan outlasts it",
			"take timeoutMS out of the URL: walrelay limits its short commands itself")
	}
	return nil
}

// ValidateURL judges the URL without asking anybody: of mongodb+srv:// only what DNS has no part in.
func (o *Options) ValidateURL() error {
	if strings.HasPrefix(o.URL, "mongodb+srv:") {
		return o.timeless()
	}
	_, err := o.ClientOptions()
	return err
}

// unknownName is what is said of a name that DNS does not know.
const unknownName = "its SRV or TXT record cannot be looked up"

// queryOptions are the names after the question mark, in small letters as the driver compares them.
func queryOptions(uri string) map[string]string {
	set := map[string]string{}
	_, query, _ := strings.Cut(uri, "?")
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		set[strings.ToLower(name)] = value
	}
	return set
}

// withoutURL is the part of a parse error that cannot hold a piece of the password: the
// driver quotes what it could not read.
func withoutURL(err error) string {
	text := err.Error()
	for _, safe := range []string{
		`scheme must be "mongodb" or "mongodb+srv"`, "unescaped slash in username", "invalid username", "unescaped colon in password",
		"unescaped slash in password", "invalid password", "unescaped @ sign in user info", "must have a / before the query ?",
		"must have at least 1 host", "must have a ? separator between path and query", "must have a / separator between hosts and path",
		"invalid auth mechanism", "auth source must be", "authSource must be non-empty", "a direct connection cannot be made if multiple hosts are specified",
		"a direct connection cannot be made if an SRV URI is used", "heartbeatFrequencyMS must exceed the minimum", "minPoolSize must be less than or equal to maxPoolSize",
		"username required", "password required", "password cannot be specified", "a write concern cannot have both w=0 and j=true",
		"tls and ssl options, when both specified, must be equivalent", "invalid option key", "invalid option value", "invalid option",
		"cannot specify srvMaxHosts on non-SRV URI", "cannot specify srvServiceName on non-SRV URI", "loadBalanced",
	} {
		if strings.Contains(text, safe) {
			return safe
		}
	}
	// The value of an option holds no password, but somebody's mistake may have put one there.
	if _, rest, ok := strings.Cut(text, "invalid value for "); ok {
		name, _, _ := strings.Cut(rest, ":")
		return "invalid value for " + name
	}
	if strings.Contains(text, "lookup ") {
		return unknownName
	}
	if strings.Contains(text, "open ") || strings.Contains(text, "PEM") || strings.Contains(text, "certificate") {
		return "one of its TLS files cannot be used"
	}
	return "it is not a connection string"
}
