package main

import (
	"fmt"
	"os"
	"strings"
)

// config is a configuration as one would write it; only the addresses are the demo's.
const config = `name: demo
sources:
  orders:
%s    schema: forze
kafka:
  brokers: [%s]
  linger: 0s                    # send at once; the default of 5ms makes fewer, larger requests
routes:
  orders: {topic: %s}
http: {listen: "%s"}
`

// writeConfig writes the file and prints it so that it can be copied.
func (st *stage) writeConfig() error {
	text := fmt.Sprintf(config, st.db.config(), strings.Join(st.brokers, ", "), topic, st.listen)
	if err := os.WriteFile(st.configPath, []byte(text), 0o600); err != nil {
		return err
	}
	st.p.line("\nThe configuration, %s:\n\n%s", st.configPath, strings.TrimRight(text, "\n"))
	name, value, _ := strings.Cut(st.db.env(), "=")
	st.p.line("\nexport %s='%s'", name, value)
	return nil
}
