package badinput

import (
	"testing"

	"github.com/walrelay/walrelay/test/rig"
)

// TestUnknownOptionIsRefusedBeforeAnythingIsConnected needs no server at all: the
// whole battery of slips is package config's.
func TestUnknownOptionIsRefusedBeforeAnythingIsConnected(t *testing.T) {
	t.Parallel()
	good := rig.House{Brokers: []string{"127.0.0.1:1"}, Topic: "orders", Slot: "s", Publication: "p", Preset: "forze", URL: "postgres://relay@127.0.0.1:1/shop"}
	for name, c := range map[string]struct {
		spoil func(*rig.House)
		words []string
	}{
		"misspelt":     {func(h *rig.House) { h.Postgres = "check_intervall: 1s" }, []string{"sources.orders.postgres.check_intervall", "check_interval"}},
		"of Kafka":     {func(h *rig.House) { h.Kafka = "acks: 1" }, []string{"kafka.acks"}},
		"wrong type":   {func(h *rig.House) { h.Kafka = "linger: soon" }, []string{"kafka.linger", "soon"}},
		"illegal slot": {func(h *rig.House) { h.Slot = "MySlot" }, []string{"slot", "MySlot", "a-z"}},
		"no such word": {func(h *rig.House) { h.Kafka = "on_poison: parc" }, []string{"kafka.on_poison", "parc", "park"}},
		"preset":       {func(h *rig.House) { h.Preset = "forzee" }, []string{"schema", "forzee", "forze"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := good
			c.spoil(&h)
			for _, command := range []string{"run", "check", "init"} {
				out, code := h.Command(t, command)
				if code != exitUsage {
					t.Errorf("%s exited %d, want %d", command, code, exitUsage)
				}
				contains(t, command, out, append(c.words, "walrelay.yaml")...)
			}
		})
	}
}
