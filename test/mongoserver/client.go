package mongoserver

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// root is the user who may do everything, with Options.Auth.
const root = "root"

// URL is the connection string of the set: with all nodes' addresses, and with
// Options.Auth that of a user who may do everything.
func (s *Server) URL() string { return s.URLAs(root, s.password) }

// URLAs is the connection string of the set for a user of AddUser's.
func (s *Server) URLAs(user, password string) string {
	return s.url(s.nodes, user, password)
}

// NodeURL is the connection string of one node alone, whatever its state.
func (s *Server) NodeURL(i int) string { return s.url(s.nodes[i:i+1:i+1], root, s.password, "direct") }

func (s *Server) url(nodes []*node, user, password string, direct ...string) string {
	var addresses []string
	for _, n := range nodes {
		addresses = append(addresses, n.address())
	}
	u := url.URL{Scheme: "mongodb", Host: strings.Join(addresses, ","), Path: "/"}
	query := url.Values{}
	if s.opts.Standalone || len(direct) > 0 {
		query.Set("directConnection", "true")
	} else {
		query.Set("replicaSet", setName)
	}
	if s.opts.TLS {
		query.Set("tls", "true")
		query.Set("tlsCAFile", s.CAFile())
	}
	if s.opts.Auth && user != "" {
		u.User = url.UserPassword(user, password)
		query.Set("authSource", "admin")
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Port is the TCP port of the node on 127.0.0.1; it stays over restarts.
func (s *Server) Port(i int) int { return s.nodes[i].port }

// Nodes is the number of nodes.
func (s *Server) Nodes() int { return len(s.nodes) }

// Client connects to URL, with the further options, and disconnects with the test.
func (s *Server) Client(t testing.TB, more ...*options.ClientOptions) *mongo.Client {
	t.Helper()
	return connectFor(t, s.URL(), more...)
}

// NodeClient connects to the node alone, whatever its state, and disconnects with
// the test.
func (s *Server) NodeClient(t testing.TB, i int, more ...*options.ClientOptions) *mongo.Client {
	t.Helper()
	return connectFor(t, s.NodeURL(i), more...)
}

func connectFor(t testing.TB, url string, more ...*options.ClientOptions) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(append([]*options.ClientOptions{options.Client().ApplyURI(url)}, more...)...)
	if err != nil {
		t.Fatalf("connect to MongoDB: %v", err)
	}
	t.Cleanup(func() { disconnect(client) })
	return client
}

// disconnect does not wait for a server that is frozen or gone.
func disconnect(client *mongo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = client.Disconnect(ctx)
}

// admin returns our own client of the node, made at first use. A stranger has
// not logged in.
func (s *Server) admin(n *node, stranger bool) (*mongo.Client, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.client != nil {
		return n.client, nil
	}
	user := root
	if stranger {
		user = ""
	}
	client, err := mongo.Connect(options.Client().ApplyURI(s.url([]*node{n}, user, s.password, "direct")).
		SetConnectTimeout(2 * time.Second))
	if err != nil {
		return nil, err
	}
	n.client = client
	return client, nil
}

// NewDatabase returns the name of a database that no other test has. On the
// shared server it is dropped with the test.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	name := "db_" + strings.ToLower(rand.Text()[:12])
	if s.shared() {
		client := s.Client(t)
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			// It waits for the open transactions of killed programs, for a minute perhaps; the server
			// goes with the process, and all of it then.
			if err := client.Database(name).Drop(ctx); err != nil {
				t.Logf("drop database %s after the test: %v", name, err)
			}
		})
	}
	return name
}

// PID is the process id of the node, 0 when it has ended.
func (s *Server) PID(i int) int {
	if p := s.nodes[i].running(); p != nil {
		return p.PID()
	}
	return 0
}
