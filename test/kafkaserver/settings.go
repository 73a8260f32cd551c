package kafkaserver

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Each node listens three times. Clients under test use CLIENT, with whatever
// authentication and encryption the test asks for. INTERNAL is plain: brokers
// and the test's own admin client use it. CONTROLLER is KRaft's.
func (s *Server) properties(n *node) string {
	replicas := strconv.Itoa(min(3, len(s.nodes)))
	minISR := strconv.Itoa(min(2, len(s.nodes)))
	p := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        strconv.Itoa(n.id),
		"controller.quorum.voters":       s.voters(),
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "INTERNAL",
		"listeners":                      n.listeners() + fmt.Sprintf(",CONTROLLER://127.0.0.1:%d", n.controller),
		"advertised.listeners":           s.advertised(n),
		"listener.security.protocol.map": "CLIENT:" + s.protocol() + ",INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                       n.data(),
		"auto.create.topics.enable":      "false",
		"num.network.threads":            "2",
		"num.io.threads":                 "4",
		"log.cleaner.dedupe.buffer.size": "16777216",
		"default.replication.factor":     replicas,
		// A node that was killed may come back when its old session has ended: default 9 s.
		"broker.session.timeout.ms":                        "3000",
		"broker.heartbeat.interval.ms":                     "250",
		"group.initial.rebalance.delay.ms":                 "0",
		"offsets.topic.num.partitions":                     "1",
		"offsets.topic.replication.factor":                 replicas,
		"transaction.state.log.num.partitions":             "1",
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    minISR,
		"share.coordinator.state.topic.num.partitions":     "1",
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            minISR,
	}
	if s.opts.TLS {
		p["ssl.keystore.type"] = "PEM"
		p["ssl.keystore.location"] = n.path("keystore.pem")
		p["ssl.truststore.type"] = "PEM"
		p["ssl.truststore.location"] = n.path("ca.pem")
	}
	if len(s.opts.Users) > 0 {
		p["listener.name.client.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
		p["listener.name.client.plain.sasl.jaas.config"] = s.plainUsers()
		const scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
		p["listener.name.client.scram-sha-256.sasl.jaas.config"] = scram
		p["listener.name.client.scram-sha-512.sasl.jaas.config"] = scram
	}
	if s.opts.Authorizer {
		p["authorizer.class.name"] = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
		// Who comes through INTERNAL is nobody in particular, and is us.
		p["super.users"] = "User:ANONYMOUS"
	}
	maps.Copy(p, s.opts.Settings)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", name, p[name])
	}
	return b.String()
}

func (s *Server) protocol() string {
	switch {
	case len(s.opts.Users) > 0 && s.opts.TLS:
		return "SASL_SSL"
	case len(s.opts.Users) > 0:
		return "SASL_PLAINTEXT"
	case s.opts.TLS:
		return "SSL"
	default:
		return "PLAINTEXT"
	}
}

func (s *Server) voters() string {
	var v []string
	for _, n := range s.nodes {
		v = append(v, fmt.Sprintf("%d@127.0.0.1:%d", n.id, n.controller))
	}
	return strings.Join(v, ",")
}

func (n *node) listeners() string {
	return fmt.Sprintf("CLIENT://127.0.0.1:%d,INTERNAL://127.0.0.1:%d", n.client, n.internal)
}

// advertised are the listeners as the node tells them to clients.
func (s *Server) advertised(n *node) string {
	if s.opts.Advertise == nil {
		return n.listeners()
	}
	return fmt.Sprintf("CLIENT://%s,INTERNAL://127.0.0.1:%d", s.opts.Advertise(n.client), n.internal)
}

func (s *Server) plainUsers() string {
	var b strings.Builder
	b.WriteString("org.apache.kafka.common.security.plain.PlainLoginModule required")
	for _, user := range slices.Sorted(maps.Keys(s.opts.Users)) {
		fmt.Fprintf(&b, " user_%s=%q", user, s.opts.Users[user])
	}
	return b.String() + ";"
}
