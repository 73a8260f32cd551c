package cases

// C72 Misspelt option
//
// Source: blazing-Gael/dcms#35, oteldb/oteldb#1285, SolaceProducts/solace-broker-mcp#49.
//
// Ideal: the start is refused with full path, line and nearest name, for file and
// flags; an unknown variable with our prefix is warned of; the effective
// configuration can be printed.
//
// One typo per option is in package config; this is the program.

import (
	"strings"
	"testing"
)

const plainConfig = `name: shop
sources:
  orders:
    postgres:
      url: postgres://relay:unused@127.0.0.1:1/shop
      tables: [public.outbox]
kafka:
  brokers: ["127.0.0.1:1"]
`

func TestC72MisspeltOptionIsRefusedWithPathLineAndNearestName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"at the top":         {plainConfig + "gracee: 10s\n", []string{"gracee", ":9", "did you mean grace?"}},
		"in a section":       {plainConfig + "  batch_max_byte: 1MB\n", []string{"kafka.batch_max_byte", ":9", "did you mean batch_max_bytes?"}},
		"under a source":     {strings.Replace(plainConfig, "tables:", "tabels:", 1), []string{"sources.orders.postgres.tabels", ":6", "did you mean tables?"}},
		"under a route":      {plainConfig + "routes:\n  orders: {topik: shop}\n", []string{"routes.orders.topik", ":10", "did you mean topic?"}},
		"acks":               {plainConfig + "  acks: 1\n", []string{"kafka.acks", ":9", "acks=all always holds"}},
		"duplicate key":      {plainConfig + "grace: 1s\ngrace: 2s\n", []string{"grace", ":10"}},
		"negative duration":  {plainConfig + "grace: -1s\n", []string{"grace", ":9", "-1s"}},
		"zero duration":      {plainConfig + "grace: 0s\n", []string{"grace", ":9"}},
		"duration, no unit":  {plainConfig + "grace: 1000\n", []string{"grace", ":9", "1000ms"}},
		"wrong type":         {plainConfig + "  create_topics: perhaps\n", []string{"kafka.create_topics", ":9", "perhaps"}},
		"two at a time":      {plainConfig + "  lingr: 1s\n  compresion: lz4\n", []string{"kafka.lingr", ":9", "linger", "kafka.compresion", ":10", "compression"}},
		"value near another": {plainConfig + "  compression: lz5\n", []string{"kafka.compression", ":9", "lz4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := configFile(t, c.file)
			for _, command := range []string{"run", "check", "config"} {
				out, code := walrelay(t, nil, command, "--config", file)
				if code != 2 {
					t.Errorf("walrelay %s exited %d, want 2", command, code)
				}
				contains(t, "walrelay "+command, out, append(c.want, file)...)
			}
		})
	}
}

func TestC72MisspeltFlagIsRefusedAndMisspeltVariableIsWarnedOf(t *testing.T) {
	t.Parallel()
	file := configFile(t, plainConfig)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--confg", file}, "--confg"},
		{[]string{"config", "--config", file, "--log-levle", "debug"}, "--log-levle"},
		{[]string{"config", "--config", file, "--log-level", "debgu"}, "debug"},
		{[]string{"rnu", "--config", file}, "did you mean run?"},
	} {
		out, code := walrelay(t, nil, c.args...)
		if code != 2 || !strings.Contains(out, c.want) {
			t.Errorf("walrelay %v exited %d, want 2 and %q: %s", c.args, code, c.want, out)
		}
	}
	out, code := walrelay(t, []string{"WALRELAY_KAFKA_LINGR=S3cr3t", "WALRELAY_KAFKA_LINGER=7ms"}, "config", "--config", file)
	if code != 0 {
		t.Errorf("walrelay config exited %d: %s", code, out)
	}
	contains(t, "walrelay config", out, "warning", "WALRELAY_KAFKA_LINGR", "did you mean WALRELAY_KAFKA_LINGER?", "linger: 7ms")
	if strings.Contains(out, "S3cr3t") {
		t.Errorf("the value of an unknown variable is shown: %s", out)
	}
	out, code = walrelay(t, []string{"WALRELAY_GRACE=-5s"}, "config", "--config", file)
	if code != 2 || !strings.Contains(out, "WALRELAY_GRACE") {
		t.Errorf("a negative grace from the environment: exit %d, %s", code, out)
	}
	// A variable that nothing reads shows on the faces of the running relay too, in its log.
	out, _ = walrelay(t, []string{"WALRELAY_KAFKA_ACKS=1"}, "check", "--config", file)
	contains(t, "walrelay check", out, "WALRELAY_KAFKA_ACKS")
}
