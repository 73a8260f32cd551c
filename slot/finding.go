package slot

import (
	"github.com/walrelay/walrelay/event"
)

// firstFailure is nil when all findings are good.
func firstFailure(findings []event.Finding) error {
	for _, f := range findings {
		if f.Err != nil {
			return f.Err
		}
	}
	return nil
}
