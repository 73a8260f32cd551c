package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// config is a configuration as one would write it; only the addresses are of here.
const config = `name: shop
sources:
  orders:
    postgres: {url: "${ORDERS_DATABASE_URL}", tables: [public.outbox]}
  payments:
    postgres: {url: "${PAYMENTS_DATABASE_URL}", tables: [public.outbox]}
kafka: {brokers: [%s]}
routes:
  orders: {topic: %s}
  payments: {topic: %s}
http: {listen: "%s"}
`

func (st *stage) configPath() string { return filepath.Join(st.dir, "walrelay.yaml") }

// prepare writes the configuration and runs walrelay init.
func (st *stage) prepare() error {
	text := fmt.Sprintf(config, strings.ReplaceAll(st.brokers, ",", ", "), ordersTopic, paymentsTopic, st.listen)
	if err := os.WriteFile(st.configPath(), []byte(text), 0o600); err != nil {
		return err
	}
	st.p.line("\nThe relay's configuration, %s:\n\n%s", st.configPath(), text)
	if out, err := st.command("walrelay", "init").CombinedOutput(); err != nil {
		return fmt.Errorf("walrelay init: %w\n%s", err, out)
	}
	return nil
}

// startRelay runs walrelay and waits until it is ready.
func (st *stage) startRelay(ctx context.Context) (err error) {
	if st.relay, err = st.start("walrelay", "run"); err != nil {
		return err
	}
	deadline := time.After(30 * time.Second)
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	last := errors.New("it has no status page yet")
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-st.relay.Done():
			return fmt.Errorf("walrelay ended at once: %w", st.relay.ended())
		case <-deadline:
			return fmt.Errorf("walrelay is not ready after 30 s: %w", last)
		case <-retry.C:
		}
		if last = st.ready(ctx); last == nil {
			return nil
		}
	}
}

func (st *stage) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+st.listen+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(strings.TrimSpace(string(body)))
	}
	return err
}
