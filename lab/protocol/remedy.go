package protocol

// RemedyError is an error that a verb of the program puts right. Its text leaves the
// verb out: programs of many names are made with lab and have the same verbs. Who knows
// the name says Advice beside it.
type RemedyError struct {
	Err  error
	What string // the verb is for, such as "go on with"
	Verb string // with its arguments, such as "resume runs/today"
}

func (e *RemedyError) Error() string { return e.Err.Error() }
func (e *RemedyError) Unwrap() error { return e.Err }

// Advice is what to do in the program of that name.
func (e *RemedyError) Advice(program string) string {
	return e.What + ": " + program + " " + e.Verb
}
