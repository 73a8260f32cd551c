package mongo

// OldMarks is for the test that looks at its plan.
var OldMarks = oldMarks
