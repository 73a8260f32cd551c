package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
	"github.com/walrelay/walrelay/mongostream"
)

// target is the position that an operator chooses for a change stream.
type target struct {
	now, oversize bool
	time, token   string
}

func (t *target) flags(f *pflag.FlagSet) {
	f.BoolVar(&t.now, "now", false, "MongoDB: the present")
	f.BoolVar(&t.oversize, "past-oversize", false, "MongoDB: past the one event, next in the stream, that is too large for it")
	f.StringVar(&t.time, "after-time", "", "MongoDB: after this time of the oplog")
	f.StringVar(&t.token, "token", "", "MongoDB: after the resume token with these hex digits, one of those that show prints")
}

func (t *target) given() bool { return t.now || t.oversize || t.time != "" || t.token != "" }

// parse reads what was given.
func (t *target) parse() (mongostream.Target, error) {
	n := 0
	for _, given := range []bool{t.now, t.oversize, t.time != "", t.token != ""} {
		if given {
			n++
		}
	}
	if n != 1 {
		return mongostream.Target{}, usageError("position set: give one of --now, --after-time, --token and --past-oversize")
	}
	to := mongostream.Target{Now: t.now, Token: t.token}
	if t.time == "" {
		return to, nil
	}
	if seconds, increment, ok := strings.Cut(t.time, ","); ok {
		s, err1 := strconv.ParseUint(seconds, 10, 32)
		if at, err := time.Parse(time.RFC3339, seconds); err == nil && at.Unix() > 0 && at.Unix() < 1<<32 { // as show prints it
			s, err1 = uint64(at.Unix()), nil
		}
		i, err2 := strconv.ParseUint(increment, 10, 32)
		if err1 == nil && err2 == nil && i < 1<<32-1 {
			// What is chosen is past: reading goes on with the next one.
			to.Time = bson.Timestamp{T: uint32(s), I: uint32(i) + 1}
			return to, nil
		}
	}
	at, err := time.Parse(time.RFC3339, t.time)
	if err != nil || at.Unix() < 1 || at.Unix() >= 1<<32-1 {
		return to, usageError("position set: %q is no time: want a form like 2026-06-01T12:00:00Z, or SECONDS,INCREMENT", t.time)
	}
	to.Time = bson.Timestamp{T: uint32(at.Unix()) + 1}
	return to, nil
}

func (a *app) showRecord(ctx context.Context, client *mongo.Client, opt mongostream.Options) error {
	r, err := mongostream.ReadRecord(ctx, client, opt)
	if err != nil {
		return err
	}
	end, err := mongostream.End(ctx, client)
	if err != nil {
		return err
	}
	if r == nil {
		_, err = fmt.Fprintf(a.out, "%s: nothing is remembered; the oplog ends at %s\n", opt.Source, moment(end))
		return err
	}
	reader := "by nobody"
	if r.Holder != "" {
		reader = "by " + r.Holder
	}
	fmt.Fprintf(a.out, "%s: remembered %s (%s); the oplog ends at %s; read %s\n", opt.Source, moment(r.Position()), r.Phase, moment(end), reader)
	fmt.Fprintf(a.out, "  token %s (%s) on replica set %s, epoch %d\n", r.Data, r.Kind, r.Set, r.Epoch)
	for _, p := range r.Earlier {
		fmt.Fprintf(a.out, "  earlier: %s, token %s\n", moment(event.AtToken(p.Data)), p.Data)
	}
	return nil
}

// moment is the time of the oplog that a position stands at, as --after-time takes it. The
// token begins with it (mongostream.AtTime); what does not is shown as it is.
func moment(p event.Position) string {
	digits, ok := strings.CutPrefix(p.Token, "82")
	if !ok || len(digits) < 16 {
		return p.String()
	}
	seconds, err1 := strconv.ParseUint(digits[:8], 16, 32)
	increment, err2 := strconv.ParseUint(digits[8:16], 16, 32)
	if err1 != nil || err2 != nil {
		return p.String()
	}
	return fmt.Sprintf("%s,%d", time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339), increment)
}

func (a *app) setRecord(ctx context.Context, client *mongo.Client, opt mongostream.Options, t target) error {
	to, err := t.parse()
	if err != nil {
		return err
	}
	if t.oversize {
		found, err := mongostream.SkipOversize(ctx, client, opt)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "%s: the event of document %v (%d bytes) at %s will be passed by, and no other: publish it by other means\n",
			opt.Source, found.ID, found.Bytes, moment(found.At))
		return err
	}
	r, err := mongostream.SetPosition(ctx, client, opt, to)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s: going on at %s\n", opt.Source, moment(r.Position()))
	return err
}
