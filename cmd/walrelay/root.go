package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/ops"
)

// streams are what a command reads from and writes to.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// app is what the commands share.
type app struct {
	streams
	configPath string
	logLevel   string
	logFormat  string
	secrets    *ops.Redactor
}

// run is the program without the process around it; it returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	a := &app{streams: s, secrets: ops.NewRedactor()}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errShown) {
		fmt.Fprintln(s.err, "walrelay: "+a.secrets.String(err.Error()))
		var e *event.Error
		if errors.As(err, &e) && e.Anchor != "" {
			fmt.Fprintf(s.err, "runbook: docs/runbook.md#%s\n", e.Anchor)
		}
	}
	return exitCode(err)
}

// Commands are listed in the order in which one meets them.
func init() { cobra.EnableCommandSorting = false }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "walrelay",
		Short: "relay a transactional outbox from the Postgres log to Kafka, in commit order",
		Long: `walrelay tails the Postgres log and publishes what was committed to an outbox.

Exit codes: 0 clean; 2 usage or configuration; 3 a precondition is missing;
4 a gap in the log, or a lost position; 5 stopped with events unacknowledged; 1 anything else.`,
		SilenceUsage:  true,
		SilenceErrors: true,

		SuggestionsMinimumDistance: 2,
		Args:                       cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			hint := ""
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				hint = "; did you mean " + strings.Join(near, " or ") + "?"
			}
			return usageError("unknown command %q%s", args[0], hint)
		},
	}
	root.PersistentFlags().StringVarP(&a.configPath, "config", "c", "", "configuration file (default: $WALRELAY_CONFIG, else "+config.DefaultPath+")")
	root.PersistentFlags().StringVar(&a.logLevel, "log-level", "", "debug, info, warn or error")
	root.PersistentFlags().StringVar(&a.logFormat, "log-format", "", "auto, json or console")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%s: %v; see '%s --help'", cmd.CommandPath(), err, cmd.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Set up:", []*cobra.Command{a.initCommand(), a.checkCommand(), a.configCommand()}},
		{"Run:", []*cobra.Command{a.runCommand(), a.statusCommand()}},
		{"Put right:", []*cobra.Command{a.parkedCommand(), a.replayCommand(), a.drainCommand()}},
		{"Look and try:", []*cobra.Command{a.tailCommand(), a.emitCommand(), a.positionCommand(), a.versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	return root
}

// load reads the configuration and registers its secrets before anything else
// can print them.
func (a *app) load() (*config.Config, []config.Warning, error) {
	var flags []config.Override
	for flag, o := range map[string]config.Override{
		a.logLevel:  {Flag: "--log-level", Path: "log.level", Value: a.logLevel},
		a.logFormat: {Flag: "--log-format", Path: "log.format", Value: a.logFormat},
	} {
		if flag != "" {
			flags = append(flags, o)
		}
	}
	c, warnings, err := config.Load(a.configPath, os.LookupEnv, os.Environ(), flags...)
	if err != nil {
		return nil, warnings, err
	}
	registerSecrets(a.secrets, c)
	return c, warnings, nil
}

func usageError(format string, args ...any) error {
	return &event.Error{Class: event.Halt, Fault: event.FaultUsage, What: fmt.Sprintf(format, args...)}
}
