package inbox

import "errors"

// ErrNotYours answers a handler that wants to end the transaction of its mark.
var ErrNotYours = errors.New("the transaction belongs to the inbox: return nil to have it committed, an error to have it rolled back")
