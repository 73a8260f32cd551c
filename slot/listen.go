package slot

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Listen calls wake for each notification on a channel, and once when it begins
// to hear them, until the connection breaks or ctx ends. It needs a connection that
// stays: through a pooler in transaction mode nothing is heard.
func Listen(ctx context.Context, o Options, channel string, wake func()) error {
	conn, err := Connect(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "listen "+pgx.Identifier{channel}.Sanitize()); err != nil {
		return Classify(err, o.scene("listening"))
	}
	for {
		wake()
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}
