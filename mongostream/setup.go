package mongostream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// Step is one thing that init makes.
type Step struct {
	// What names it, for instance "collection shop.outbox".
	What string
	// Commands are what is done, as the shell would write it, in order; empty when it is there and fits.
	Commands []string
	// Without says why it is left out for now, where the relay can do without it.
	Without string

	make func(ctx context.Context, db *mongo.Database) error
}

// Done reports that nothing is left to do.
func (s Step) Done() bool { return len(s.Commands) == 0 }

// Steps are in the order in which they must be made.
type Steps []Step

// Done reports that nothing is left to do.
func (s Steps) Done() bool {
	return !slices.ContainsFunc(s, func(step Step) bool { return !step.Done() })
}

// Plan says what init would make. What exists and fits is left as it is; what
// exists and differs is an error that names the difference: walrelay alters
// nothing that somebody else may rely on.
func Plan(ctx context.Context, client *mongo.Client, o Options) (Steps, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	v, err := takeInventory(ctx, client, &o)
	if err != nil {
		return nil, err
	}
	if v.standalone() && o.Capture == CaptureStream {
		return nil, kindStandalone.answer(nil)
	}
	if e := v.unfit(&o); e != nil {
		return nil, e
	}
	steps := v.collectionSteps(&o)
	if !o.writesRecord() {
		return steps, nil
	}
	step, err := v.positionStep(ctx, client, &o)
	return append(steps, step), err
}

// collectionSteps are the outbox collection and walrelay's own, each with its indexes.
func (v *inventory) collectionSteps(o *Options) (steps Steps) {
	indexes := append(o.outboxIndexes(), o.bookIndexes()...)
	for i, name := range append([]string{o.Collection}, o.books()...) {
		step := Step{What: "collection " + o.Database + "." + name}
		if i > 0 {
			step.What = "bookkeeping " + o.Database + "." + name
		}
		if !v.has(name) {
			step.Commands, step.make = []string{createJS(name)}, createCollection(name)
		}
		steps = append(steps, step)
		want := ofCollection(indexes, name)
		if len(want) == 0 {
			continue
		}
		step = Step{What: "indexes of " + o.Database + "." + name}
		if slices.Contains(v.blind, name) && v.has(name) {
			step.Without = "the user may not list them: see that what 'walrelay init --print' shows is there"
			steps = append(steps, step)
			continue
		}
		lack := missing(want, v.indexes)
		for _, x := range lack {
			step.Commands = append(step.Commands, x.createJS())
		}
		step.make = func(ctx context.Context, db *mongo.Database) error {
			return createIndexes(ctx, db, name, lack, v.standalone())
		}
		steps = append(steps, step)
	}
	return steps
}

// positionStep is the record of the position, which begins at the present. It comes last: what
// is inserted before it is not the stream's.
func (v *inventory) positionStep(ctx context.Context, client *mongo.Client, o *Options) (Step, error) {
	step := Step{What: "position of " + o.Marker}
	if v.has(o.SourcesCollection()) {
		r, err := ReadRecord(ctx, client, *o)
		if err != nil || r != nil {
			return step, err // a new one would hide what the old one still had to bring
		}
	}
	if o.Capture == CaptureAuto && v.standalone() {
		step.Without = kindStandalone.answer(nil).Error()
		return step, nil
	}
	step.Commands = []string{"// the present end of the log"}
	step.make = func(ctx context.Context, _ *mongo.Database) error {
		_, err := Begin(ctx, client, *o)
		return err
	}
	return step, nil
}

// Apply makes what Plan says. Each step can be made again after one that failed.
func Apply(ctx context.Context, client *mongo.Client, o Options) (Steps, error) {
	o = o.WithDefaults()
	steps, err := Plan(ctx, client, o)
	if err != nil {
		return steps, err
	}
	db := client.Database(o.Database)
	for i, step := range steps {
		if step.Done() || step.Without != "" {
			continue
		}
		err := step.make(ctx, db)
		if o.Capture == CaptureAuto && i == len(steps)-1 && event.ClassOf(err) == event.Halt && err != nil {
			// The collection is polled until there can be a stream; the relay makes the position then.
			steps[i].Without, steps[i].Commands = err.Error(), nil
			return steps, nil
		}
		if err != nil {
			return steps, Classify(err, "making "+step.What)
		}
	}
	return steps, nil
}

func createCollection(name string) func(context.Context, *mongo.Database) error {
	return func(ctx context.Context, db *mongo.Database) error {
		err := db.CreateCollection(ctx, name)
		var s mongo.ServerError
		if errors.As(err, &s) && s.HasErrorCode(48) { // somebody else was quicker
			return nil
		}
		return err
	}
}

// createIndexes makes them one by one, so that an error names the one that it is about. The server builds them beside
// ordinary work. It is not waited for members that are down.
func createIndexes(ctx context.Context, db *mongo.Database, collection string, list []index, standalone bool) error {
	for _, x := range list {
		command := bson.D{{Key: "createIndexes", Value: collection}, {Key: "indexes", Value: bson.A{x.specification()}}}
		if !standalone { // which refuses it
			command = append(command, bson.E{Key: "commitQuorum", Value: "majority"})
		}
		err := db.RunCommand(ctx, command).Err()
		var s mongo.ServerError
		switch {
		case err == nil:
		case errors.As(err, &s) && s.HasErrorCode(11000):
			e := precondition(AnchorIndex, fmt.Sprintf("the index on %s.%s %s cannot be made: documents are there twice", db.Name(), collection, x.describe()),
				"remove one of each two, then run 'walrelay init' again")
			e.Cause = quiet{err}
			return e
		case errors.As(err, &s) && (s.HasErrorCode(85) || s.HasErrorCode(86)):
			e := precondition(AnchorIndex, fmt.Sprintf("the index on %s.%s %s cannot be made: one with its name or keys is there, with other options", db.Name(), collection, x.describe()),
				"drop that one if nobody relies on it, then run 'walrelay init' again")
			e.Cause = quiet{err}
			return e
		default:
			return err
		}
	}
	return nil
}
