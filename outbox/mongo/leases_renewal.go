package mongo

import (
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	driver "go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/outbox"
)

// now is the server's clock; it stands still for the length of a command.
const now = "$$NOW"

// renewal is the update that one renewal makes, in steps. Fields whose names begin with an
// underscore pass from step to step only.
func renewal(holder string, ttl time.Duration, req outbox.LeaseRequest) driver.Pipeline {
	me := literal(holder)
	until := call("$add", now, ttl.Milliseconds())
	back := bson.A{}
	for _, n := range req.GiveBack {
		back = append(back, n)
	}
	var (
		thisCut = call("$eq", "$$s.of", req.Of)
		mine    = call("$eq", "$$s.holder", me)
		over    = call("$lte", "$$s.until", now)
		chosen  = call("$and", thisCut, call("$in", "$$s.n", "$_may"))
		shards  = call("$ifNull", "$shards", bson.A{})
	)
	return driver.Pipeline{
		// What is given back goes, and of other cuts, and of members, what is over. Of this cut
		// it stays: it says whose it was, and until when.
		set("shards", filter(shards, call("$cond", thisCut,
			call("$not", call("$and", mine, call("$in", "$$s.n", back))), call("$not", over)))),
		set("members", filter(call("$ifNull", "$members", bson.A{}), call("$not", over))),
		set("shards", forEach("$shards", call("$cond", call("$and", thisCut, mine),
			call("$mergeObjects", "$$s", bson.D{{Key: "until", Value: until}}), "$$s"))),

		set("_taken", forEach(filter("$shards", call("$and", thisCut, call("$or", mine, call("$not", over)))), "$$s.n")),
		set("_had", forEach(filter("$shards", call("$and", thisCut, mine)), "$$s.n")),
		set("_otherCut", call("$gt", call("$size", filter("$shards", call("$not", thisCut))), 0)),
		set("_free", call("$cond", "$_otherCut", bson.A{},
			filter(call("$range", 0, req.Of), call("$not", call("$in", "$$s", call("$concatArrays", "$_taken", back)))))),
		set("_room", call("$subtract", req.Want, call("$size", "$_had"))),
		set("_may", call("$cond", call("$gt", "$_room", 0), call("$slice", "$_free", call("$max", "$_room", 1)), bson.A{})),
		set("_may", call("$cond", call("$or", !req.All, call("$in", 0, call("$concatArrays", "$_may", "$_had"))), "$_may", bson.A{})),

		// The tenure of a part that is over is what it said until now.
		set("taken", filter("$shards", chosen)),
		set("shards", call("$concatArrays",
			filter("$shards", call("$not", chosen)),
			forEach("$_may", bson.D{
				{Key: "of", Value: req.Of}, {Key: "n", Value: "$$s"}, {Key: "holder", Value: me}, {Key: "from", Value: now}, {Key: "until", Value: until},
			}))),
		// Who wants all and lacks the first part, or waits for another cut to end, has no share.
		set("members", call("$concatArrays", filter("$members", call("$not", mine)),
			call("$cond", shares(req), bson.A{bson.D{{Key: "holder", Value: me}, {Key: "until", Value: until}}}, bson.A{}))),
		set("at", now),
		unset("_taken", "_had", "_otherCut", "_free", "_room", "_may"),
	}
}

func shares(req outbox.LeaseRequest) any {
	if req.All {
		return call("$in", 0, call("$concatArrays", "$_may", "$_had"))
	}
	return call("$not", "$_otherCut")
}

// release is the update that takes a holder out.
func release(holder string) driver.Pipeline {
	others := call("$ne", "$$s.holder", literal(holder))
	return driver.Pipeline{
		set("shards", filter(call("$ifNull", "$shards", bson.A{}), others)),
		set("members", filter(call("$ifNull", "$members", bson.A{}), others)),
		set("taken", bson.A{}),
		set("at", now),
	}
}

// The expressions, short.

func call(operator string, args ...any) bson.D {
	return bson.D{{Key: operator, Value: bson.A(args)}}
}

func literal(v any) bson.D { return bson.D{{Key: "$literal", Value: v}} }

func filter(list, condition any) bson.D {
	return bson.D{{Key: "$filter", Value: bson.D{{Key: "input", Value: list}, {Key: "as", Value: "s"}, {Key: "cond", Value: condition}}}}
}

func forEach(list, what any) bson.D {
	return bson.D{{Key: "$map", Value: bson.D{{Key: "input", Value: list}, {Key: "as", Value: "s"}, {Key: "in", Value: what}}}}
}

func set(field string, v any) bson.D {
	return bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: v}}}}
}

func unset(fields ...string) bson.D {
	return bson.D{{Key: "$unset", Value: fields}}
}
