package postgres

import "errors"

// victim reports whether Postgres gave the transaction up only because of what ran
// beside it: serialization_failure and deadlock_detected (appendix A of its manual).
func victim(err error) bool {
	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) {
		return false
	}
	state := coded.SQLState()
	return state == "40001" || state == "40P01"
}
