package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

func (a *app) runCommand() *cobra.Command {
	var exitOnHalt bool
	cmd := &cobra.Command{
		Use: "run", Short: "relay until told to stop", Args: cobra.NoArgs,
		Long: `run relays until SIGINT or SIGTERM; it then finishes the transaction at hand, waits for
Kafka's acknowledgements, confirms them and ends. A second signal ends it at once.

A source that cannot go on (a lost slot, a missing right) keeps the process up and not ready, with the
reason and the remedy on /readyz and in the log; what is missing is looked for again every 15 s.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, warnings, err := a.load()
			if err != nil {
				return err
			}
			return a.relay(cmd.Context(), c, warnings, exitOnHalt)
		},
	}
	cmd.Flags().BoolVar(&exitOnHalt, "exit-on-halt", false, "exit (code 3 or 4) when a source cannot go on, instead of waiting for an operator")
	return cmd
}

func (a *app) relay(ctx context.Context, c *config.Config, warnings []config.Warning, exitOnHalt bool) error {
	tuneMemory(c)
	log, err := ops.NewLogger(ops.LogOptions{
		Level: c.Log.Level, Format: c.Log.Format, Out: a.err, IsTTY: isTerminal(a.err), Secrets: a.secrets,
	})
	if err != nil {
		return err
	}
	defer log.Close()
	log.Logger.Info("walrelay starts", zap.String("name", c.Name), zap.String("version", versionText()),
		zap.Int("sources", len(c.Sources)), zap.Strings("brokers", c.Kafka.Brokers), zap.Int("pid", os.Getpid()))

	h, err := assemble(ctx, c, log, exitOnHalt)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		h.ops.Warn(event.Condition{What: w.String(), Anchor: "configuration"})
	}
	// The page outlives the relay's drain: people look at it most just then.
	webCtx, stopWeb := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWeb()
	server, err := h.ops.Listen(webCtx, c.HTTP.Listen)
	if err != nil {
		return errors.Join(err, h.publisher.Close(ctx))
	}
	log.Logger.Info("status page", zap.String("url", "http://"+server.Addr().String()+"/"))
	web := make(chan error, 1)
	go func() { web <- server.Run(webCtx) }()

	stopping := context.AfterFunc(ctx, func() {
		log.Logger.Info("stopping: finishing the transaction at hand and waiting for Kafka",
			zap.Duration("grace", c.Grace), zap.NamedError("cause", context.Cause(ctx)))
	})
	defer stopping()
	err = h.run(ctx)
	stopWeb()
	werr := <-web
	h.ops.LogEnd(err)
	if err == nil {
		err = werr
	}
	return err
}
