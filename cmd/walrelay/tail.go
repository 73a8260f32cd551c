package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
	"github.com/walrelay/walrelay/relay"
	"github.com/walrelay/walrelay/router"
	"github.com/walrelay/walrelay/slot"
)

func (a *app) tailCommand() *cobra.Command {
	var source string
	var count int
	cmd := &cobra.Command{
		Use: "tail", Short: "print the records of new events as JSON lines, without Kafka and without moving anything", Args: cobra.NoArgs,
		Long: `tail reads the log through a temporary slot (or a change stream) of its own, from now on, and prints
what would be sent. The relay's position is not touched; nothing is written anywhere.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tail(cmd.Context(), source, count) },
	}
	cmd.Flags().StringVar(&source, "source", "", "name of the source; may be left out when there is one")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "end after that many events")
	return cmd
}

// tailRecord is one line of tail.
type tailRecord struct {
	Topic     string            `json:"topic"`
	Key       *string           `json:"key"`
	Headers   map[string]string `json:"headers"`
	Time      time.Time         `json:"time"`
	Value     json.RawMessage   `json:"value,omitempty"`     // where the value is JSON
	ValueText *string           `json:"valueText,omitempty"` // where it is other text
	ValueBin  []byte            `json:"valueBase64,omitempty"`
	Commit    string            `json:"commit"`
	Refused   string            `json:"refused,omitempty"`
}

func (a *app) tail(ctx context.Context, source string, count int) error {
	c, _, err := a.load()
	if err != nil {
		return err
	}
	name, err := pickSource(c, source)
	if err != nil {
		return err
	}
	ropt, err := c.RouterOptions(name)
	if err != nil {
		return err
	}
	rt, err := router.New(ropt)
	if err != nil {
		return err
	}
	s, err := a.openTail(c, name)
	if err != nil {
		return err
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = s.Close(closeCtx)
	}()
	out := json.NewEncoder(a.out)
	out.SetEscapeHTML(false)
	printed := 0
	for count == 0 || printed < count {
		b, err := s.Next(ctx)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for i := range b.Events {
			if count > 0 && printed == count {
				break
			}
			if err := out.Encode(tailLine(rt, &b.Events[i])); err != nil {
				return err
			}
			printed++
		}
		for _, span := range b.Spans {
			if span.Done {
				s.Confirm(span.End)
			}
		}
		b.Memory.Release()
	}
	return nil
}

// openTail opens a stream of the source that begins now and leaves no trace.
func (a *app) openTail(c *config.Config, name string) (relay.Source, error) {
	began := func(at string) { fmt.Fprintf(a.err, "reading %s from %s on\n", name, at) }
	broke := func(err error) {
		fmt.Fprintf(a.err, "the connection broke, events may be missing here: %s\n", a.secrets.String(err.Error()))
	}
	if c.IsMongo(name) {
		opt, err := c.MongoOptions(name)
		if err != nil {
			return nil, err
		}
		opt.HaltOnPrecondition, opt.Bookkeeping = true, mongostream.NoBookkeeping
		return mongostream.Open(opt, mongostream.Observer{
			Started: func(at event.Position, _ string) { began(moment(at)) }, Reconnect: broke,
		})
	}
	opt, err := c.SlotOptions(name)
	if err != nil {
		return nil, err
	}
	opt.Temporary, opt.HaltOnPrecondition, opt.Bookkeeping = true, true, slot.NoBookkeeping
	opt.Slot = fmt.Sprintf("walrelay_tail_%d_%d", os.Getpid(), time.Now().UnixMilli()%1_000_000)
	return slot.Open(opt, slot.Observer{Started: func(at event.LSN, _ string) { began(at.String()) }, Reconnect: broke})
}

func tailLine(rt *router.Router, ev *event.Event) tailRecord {
	var rec event.Record
	_, err := rt.Route(ev, &rec, nil)
	if ev.Refused != nil {
		err = ev.Refused
	}
	line := tailRecord{Topic: rec.Topic, Headers: map[string]string{}, Time: time.UnixMilli(rec.Millis).UTC(), Commit: ev.Commit.String()}
	if err != nil {
		line.Refused = err.Error()
	}
	if rec.Key != nil {
		line.Key = new(string(rec.Key))
	}
	for _, h := range rec.Headers {
		line.Headers[h.Key] = string(h.Value)
	}
	switch {
	case rec.Value == nil:
	case json.Valid(rec.Value):
		line.Value = rec.Value
	case utf8.Valid(rec.Value):
		line.ValueText = new(string(rec.Value))
	default:
		line.ValueBin = rec.Value
	}
	return line
}
