package slot

import (
	"net"
	"time"
)

// newDialer makes connections that notice a dead peer by themselves: a host that
// vanished sends no FIN, and a plain socket would wait for hours (two, with the
// kernel's defaults). silence bounds how long sent bytes may stay unacknowledged.
func newDialer(silence time.Duration) *net.Dialer {
	if silence < 10*time.Second {
		silence = 10 * time.Second
	}
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: silence / 3, Interval: max(silence/9, time.Second), Count: 6,
		},
		Control: userTimeout(silence),
	}
}
