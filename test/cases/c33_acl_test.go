package cases

// C33 ACL missing for one topic
//
// Source: bmscomp/kates#83.
//
// Ideal: the denial names principal, operation and topic; other topics go on as
// in C32; after the grant the relay recovers within 60 s without a restart. The
// relay uses no topics of its own and no transactions, so that there is nothing
// else to grant.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/walrelay/walrelay/test/kafkaserver"
	"github.com/walrelay/walrelay/test/oracle"
	"github.com/walrelay/walrelay/test/pgserver"
	"github.com/walrelay/walrelay/test/rig"
)

func TestC33DeniedTopicIsNamedHoldsUpNobodyAndRecoversOnTheGrant(t *testing.T) {
	t.Parallel()
	k := kafkaserver.Start(t, kafkaserver.Options{Users: map[string]string{"relay": "a-secret"}, Authorizer: true})
	h := rig.NewHouse(t, pgserver.Shared(t, pgserver.V18), k.Brokers(), "orders")
	h.Kafka = "sasl: {mechanism: PLAIN, user: relay, password: a-secret, allow_plaintext: true}"
	h.Routes = "audit: {topic: audit}"
	k.CreateTopic(t, "orders", 3, nil)
	k.CreateTopic(t, "audit", 3, nil)
	h.Init(t)
	r := h.Start(t)
	conn := h.PG.Conn(t, h.Database)
	// No right at all denies even the idempotent producer (IdempotentWrite), and that
	// is known before the first event.
	contains(t, "/readyz", r.WaitNotReady(soon, "CLUSTER_AUTHORIZATION_FAILED"), "User:relay", "IdempotentWrite")
	allow(t, k, "orders")

	for n := range int64(400) {
		route := "orders"
		if n%2 == 1 {
			route = "audit"
		}
		insertRow(t, conn, route, fmt.Sprintf("%s %d", route, n%14), n)
	}
	k.ConsumeN(t, 200, soon, "orders")
	reason := r.WaitNotReady(soon, "topic audit")
	contains(t, "/readyz", reason, "User:relay", "Write", "TOPIC_AUTHORIZATION_FAILED")

	allow(t, k, "audit")
	began := time.Now()
	k.ConsumeN(t, 200, soon, "audit")
	if took := time.Since(began); took > 60*time.Second {
		t.Errorf("the recovery took %s, bound is 60 s", took)
	}
	drain(t, h)
	r.WaitReady(soon)
	oracle.Require(t, committedRows(t, h), slices.Concat(k.Consume(t, "orders"), k.Consume(t, "audit")), 0)
	stopsClean(t, r)
}

// allow grants the relay's user what a topic needs.
func allow(t *testing.T, k *kafkaserver.Server, topic string) {
	t.Helper()
	grant := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).
		Operations(kadm.OpWrite, kadm.OpDescribe).Allow("User:relay").AllowHosts()
	if _, err := k.Admin(t).CreateACLs(t.Context(), grant); err != nil {
		t.Fatal(err)
	}
}
