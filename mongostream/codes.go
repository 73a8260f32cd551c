package mongostream

import (
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/walrelay/walrelay/event"
)

// What the server's codes come to (src/mongo/base/error_codes.yml). Change streams that the
// driver does not take up again by itself end in any of them.
var codeKinds = map[int]kind{
	6: kindNetwork, 7: kindNetwork, 89: kindNetwork, 9001: kindNetwork,
	91: kindNetwork, 11600: kindNetwork, // going down
	189: kindPrimary, 10107: kindPrimary, 13435: kindPrimary, 13436: kindPrimary, 10058: kindPrimary, 11602: kindPrimary, 216: kindPrimary, 133: kindPrimary,
	94:  kindPrimary, // not yet initialised
	24:  kindPassing, // lock timeout
	43:  kindPassing, // cursor not found
	46:  kindPassing, // lock busy
	50:  kindPassing, // max time
	63:  kindPassing, // stale shard version
	112: kindPassing, // write conflict
	117: kindPassing, // conflicting operation
	134: kindPassing, // majority read not available yet
	150: kindPassing, 175: kindPassing, 202: kindPassing, 225: kindPassing, 234: kindPassing, 237: kindPassing, 244: kindPassing, 246: kindPassing,
	211: kindPassing, // no key for signed times yet: a set that was just made
	251: kindPassing, // no such transaction
	276: kindPassing, // index build aborted
	290: kindPassing, // a transaction took too long
	262: kindPassing, 13388: kindPassing, 11601: kindPassing, 462: kindPassing,
	11000: kindPassing, // two made the same document at once
	64:    kindConcern, 100: kindConcern,
	14031: kindDisk,
	13:    kindRights, 31: kindRights,
	11: kindLogin, 18: kindLogin, 8000: kindLogin, 334: kindLogin, 391: kindLogin,
	40573: kindStandalone, 123: kindStandalone, 76: kindStandalone,
	40324: kindStage, 40602: kindStage, 40415: kindStage, 59: kindStage, 115: kindStage, 303: kindStage, 238: kindStage,
	26:  kindCollection,
	121: kindRefused, 166: kindRefused, // document validation; a view
	292: kindSort,
	286: kindLost, 260: kindLost, 280: kindLost, 136: kindLost, 50811: kindLost,
	10334: kindOversize,
}

type kind uint8

const (
	kindUnknown kind = iota
	kindNetwork
	kindPrimary
	kindPassing
	kindConcern
	kindDisk
	kindRights
	kindLogin
	kindStandalone
	kindStage
	kindCollection
	kindRefused
	kindSort
	kindLost
	kindOversize
)

// classifyServer judges by the server's code and, where there is none that is known, by
// its labels. nil: the error is not the server's.
func classifyServer(err error) *event.Error {
	var s mongo.ServerError
	if !errors.As(err, &s) {
		return nil
	}
	found, known := kindUnknown, false
	for _, code := range s.ErrorCodes() {
		if k := codeKinds[code]; k != kindUnknown {
			found = k
			break
		}
		known = known || code != 0
	}
	switch {
	case found == kindUnknown && s.HasErrorCodeWithMessage(20, "replica set"): // illegal operation: a transaction without one
		found = kindStandalone
	case found == kindUnknown && s.HasErrorLabel("NonResumableChangeStreamError"):
		found = kindLost
	case found == kindUnknown && passingLabel(err):
		found = kindPassing
	case found == kindUnknown && !known:
		return nil // the driver dresses a broken connection as the server's error, with code 0
	}
	return found.answer(err)
}

func (k kind) answer(err error) *event.Error {
	switch k {
	case kindNetwork:
		return retry(AnchorUnreachable, "the server, or another that it needs, cannot be reached or is going down", "wait for the server")
	case kindPrimary:
		return retry(AnchorNoPrimary, "the member is not the primary, or no longer", "wait for the election to end")
	case kindPassing:
		return retry(AnchorServer, "the command was cut short", "nothing; it is tried again")
	case kindConcern:
		return retry(AnchorMajority, "the write was not acknowledged by a majority of the replica set in time",
			"see with rs.status() which data-bearing members are down or behind")
	case kindDisk:
		return retry(AnchorServer, "the server is short of disk", "make room on the server")
	case kindRights:
		return precondition(AnchorRights, "the user lacks a right", "grant it as 'walrelay init --print' shows: find and changeStream on the outbox collection, and more where documents are marked or claimed")
	case kindLogin:
		return precondition(AnchorCredentials, "the server refused the login",
			"check user and password of the source, and authSource in the URL: it names the database that the user was created in")
	case kindStandalone:
		return precondition(AnchorStandalone, "the server is a standalone mongod, and has neither an oplog nor transactions",
			"start it with --replSet and run rs.initiate() once, one member is enough; or write capture: poll")
	case kindStage:
		return precondition(AnchorVersion, "the server does not know a command or stage that walrelay needs: it is too old, or not MongoDB itself",
			"use MongoDB 4.4 or later (tested with 6.0); or write capture: poll")
	case kindCollection:
		return precondition(AnchorNotInitialised, "a collection or database is missing", "run 'walrelay init'")
	case kindRefused:
		return precondition(AnchorCollection, "the collection refuses what walrelay writes to it: it has a validator that does not allow it, or is a view",
			"let the validator allow the states of the contract and null, and name the collection itself")
	case kindSort:
		return precondition(AnchorIndex, "a query has to sort more documents than the server can hold in memory: an index is missing", "run 'walrelay init', which makes it")
	case kindLost:
		return gap(AnchorPositionLost, lostBecause(err), remedyLost)
	case kindOversize:
		return &event.Error{
			Class: event.Halt, Anchor: AnchorOversize, What: "an event is larger than the 16 MiB that a change stream can carry",
			Remedy: "publish that document by other means, then pass it by with 'walrelay position set --past-oversize', which says which document it is",
		}
	}
	return &event.Error{
		Class: event.Halt, Anchor: AnchorServer, What: "the server reported an error that walrelay does not know",
		Remedy: "read the server's message and its log",
	}
}

// lostBecause says which way the position was lost.
func lostBecause(err error) string {
	code, _, message, _ := serverMessage(err)
	switch {
	case code == 286, code == 136, strings.Contains(message, "no longer be in the oplog"):
		return "the oplog no longer reaches back to the remembered position: it was overwritten while nobody read it"
	case code == 280:
		return "the server does not find the remembered position in its oplog: it belongs to another collection or another server"
	case code == 260:
		return "the remembered position cannot be resumed after"
	case code == 50811:
		return "the remembered position is not one: it is damaged"
	}
	return "the remembered position is lost"
}
