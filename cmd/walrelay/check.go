package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/publish"
	"github.com/walrelay/walrelay/router"
	"github.com/walrelay/walrelay/slot"
)

func (a *app) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check", Short: "look at every precondition on the databases and Kafka, and change nothing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, warnings, err := a.load()
			if err != nil {
				return err
			}
			r := report{w: a.out, redact: a.secrets.String}
			for _, w := range warnings {
				r.line("warn", "configuration", w.String(), "", "")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			return a.check(ctx, c, &r)
		},
	}
}

func (a *app) check(ctx context.Context, c *config.Config, r *report) error {
	for _, s := range c.Sources {
		r.title("source " + s.Key)
		if c.IsMongo(s.Key) {
			opt, err := c.MongoOptions(s.Key)
			if err != nil {
				return err
			}
			r.findings(mongostream.Check(ctx, opt))
			continue
		}
		opt, err := c.SlotOptions(s.Key)
		if err != nil {
			return err
		}
		r.findings(slot.Check(ctx, opt))
	}
	topics, open, err := knownTopics(c)
	if err != nil {
		return err
	}
	opt := c.PublishOptions()
	opt.Desk = &desks{} // nothing is published here
	r.title("kafka")
	r.findings(publish.Check(ctx, opt, topics))
	if open {
		r.line("ok", "topics by template", "their names are known when events come", "", "")
	}
	if r.failed > 0 {
		return shown{&event.Error{Class: event.Halt, Fault: event.FaultPrecondition, What: fmt.Sprintf("%d preconditions are missing", r.failed)}}
	}
	return nil
}

// knownTopics are the topics that the routes name outright; open says that
// others will come out of templates.
func knownTopics(c *config.Config) (topics []string, open bool, err error) {
	seen := map[string]bool{}
	for _, s := range c.Sources {
		opt, err := c.RouterOptions(s.Key)
		if err != nil {
			return nil, false, err
		}
		rt, err := router.New(opt)
		if err != nil {
			return nil, false, err
		}
		names, more := rt.Topics()
		open = open || more
		for _, n := range names {
			if !seen[n] {
				seen[n] = true
				topics = append(topics, n)
			}
		}
	}
	return topics, open, nil
}

// report prints findings, one line each and the remedy below where one is due.
type report struct {
	w      io.Writer
	redact func(string) string
	failed int
}

func (r *report) title(s string) { fmt.Fprintf(r.w, "\n%s\n", r.redact(s)) }

func (r *report) findings(list []event.Finding) {
	for _, f := range list {
		mark, remedy := "ok", ""
		switch {
		case !f.OK:
			mark, remedy = "FAIL", f.Remedy
			r.failed++
		case f.Warning:
			mark, remedy = "warn", f.Remedy
		}
		r.line(mark, f.Setting, f.Is, f.Needs, remedy)
	}
}

func (r *report) line(mark, setting, is, needs, remedy string) {
	text := fmt.Sprintf("  %-4s %s: %s", mark, setting, is)
	if needs != "" && mark != "ok" {
		text += " (needs: " + needs + ")"
	}
	if remedy != "" {
		text += "\n       remedy: " + remedy
	}
	fmt.Fprintln(r.w, r.redact(text))
}
