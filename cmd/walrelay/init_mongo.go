package main

import (
	"context"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/config"
	"github.com/walrelay/walrelay/mongostream"
)

// initMongo makes the collections, indexes and the position of a source.
func (a *app) initMongo(ctx context.Context, c *config.Config, source string, print bool) error {
	opt, err := c.MongoOptions(source)
	if err != nil {
		return err
	}
	if print {
		return mongostream.Print(a.out, opt)
	}
	return withMongo(ctx, opt, 5*time.Minute, func(ctx context.Context, client *mongo.Client) error {
		steps, err := mongostream.Apply(ctx, client, opt)
		for _, s := range steps {
			mark := "made "
			if s.Done() {
				mark = "there"
			}
			fmt.Fprintf(a.out, "%s  %s: %s\n", mark, source, s.What)
		}
		return err
	})
}

// newPosition gives up what the old position still had to bring.
func (a *app) newPosition(ctx context.Context, c *config.Config, source string) error {
	opt, err := c.MongoOptions(source)
	if err != nil {
		return err
	}
	return withMongo(ctx, opt, commandTimeout, func(ctx context.Context, client *mongo.Client) error {
		r, err := mongostream.SetPosition(ctx, client, opt, mongostream.Target{Now: true})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "%s: the position begins anew at %s\n", source, moment(r.Position()))
		return err
	})
}

// withMongo runs f with a client that goes afterwards.
func withMongo(ctx context.Context, opt mongostream.Options, limit time.Duration, f func(context.Context, *mongo.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	client, err := mongostream.Connect(ctx, opt)
	if err != nil {
		return err
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	return f(ctx, client)
}
