package check

import (
	"fmt"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Linearizable checks that the operations can be put into one order that the
// model allows and that agrees with real time: an operation that returned
// before another was called comes first. Equal times overlap. Parts of the
// history, as the model splits it, are searched at once.
//
// The timeout bounds the search, and must be positive: without a bound one
// unlucky history stops a run for good. When it passes, the result is Unknown,
// unless a part has already been shown to have no legal order. Describing
// a counter-example, of which there are at most two, may take as long again,
// but no more than ten seconds.
//
// Assumed: Call was taken before the operation was sent, and Return after its
// answer was there, from one clock. The model is pure. A model that panics
// makes its part Unknown.
//
// A pass needs at least one operation, and where all inputs are of type [Op], at
// least one that was answered with more than an acknowledgement: writes and
// puts alone fit any order. Kinds counts the operations whose input is an Op
// with OutcomeOK; of other inputs it knows no kind.
//
// Not for: histories with many maybe operations on one key whose values were
// seen, or with many overlapping operations on one key. The search is
// exponential in both, and ends Unknown.
func Linearizable(name string, model porcupine.Model, ops []porcupine.Operation, timeout time.Duration) Result {
	return Guard(name, func() Result { return linearizable(model, ops, timeout) })
}

// LinearizableOps is [Linearizable] over what [Operations] makes of ops.
// Operations counts those that were looked at, without the ones left out.
func LinearizableOps(name string, model porcupine.Model, ops []Op, timeout time.Duration) Result {
	history, err := Operations(ops)
	if err != nil {
		return Result{Name: name, Verdict: Unknown, Message: err.Error()}
	}
	return Linearizable(name, model, history, timeout)
}

func linearizable(model porcupine.Model, ops []porcupine.Operation, timeout time.Duration) Result {
	res := Result{Verdict: Pass, Operations: len(ops), Kinds: kindsOf(ops)}
	if reason := unfit(ops, timeout); reason != "" {
		return res.doubt(reason)
	}
	parts := [][]porcupine.Operation{ops}
	if model.Partition != nil {
		parts = model.Partition(ops)
	}
	searched := search(model, parts, timeout)

	looked, illegal, open := 0, 0, ""
	for i, s := range searched {
		looked += len(parts[i])
		switch {
		case s.panicked != "":
			open = s.panicked
		case s.result == porcupine.Illegal:
			if illegal++; len(res.Examples) < maxPerClass {
				res.Examples = append(res.Examples, explain(model, parts[i], timeout))
			}
		case s.result != porcupine.Ok && open == "":
			open = fmt.Sprintf("no answer within %v", timeout)
		}
	}
	if illegal > 0 {
		res.Verdict, res.Message = Fail, fmt.Sprintf("%d of %d parts of the history have no legal order", illegal, len(parts))
	}
	if open != "" {
		return res.doubt(open)
	}
	if looked == 0 {
		return res.doubt("the model splits the history into nothing")
	}
	return res
}

// unfit says why a history cannot be judged, empty if it can.
func unfit(ops []porcupine.Operation, timeout time.Duration) string {
	if len(ops) == 0 {
		return "the history is empty"
	}
	if timeout <= 0 {
		return fmt.Sprintf("the search needs a positive timeout, not %v", timeout)
	}
	tells := false
	for i, o := range ops {
		if o.Return < o.Call {
			return fmt.Sprintf("malformed history: operation %d returned at %d, before its call at %d", i, o.Return, o.Call)
		}
		op, known := o.Input.(Op)
		tells = tells || !known || op.tells()
	}
	if !tells {
		return "no operation was answered with more than an acknowledgement: any order fits"
	}
	return ""
}

func kindsOf(ops []porcupine.Operation) map[string]int {
	kinds := map[string]int{}
	for _, o := range ops {
		if op, known := o.Input.(Op); known && op.Outcome == OutcomeOK {
			kinds[op.Kind]++
		}
	}
	return kinds
}

// searched is what the search of one part came to. The result means nothing
// if the model panicked.
type searched struct {
	result   porcupine.CheckResult
	panicked string
}

// search judges the parts by themselves. Porcupine would do it in one call, but
// then neither says which part is illegal nor which one ran out of time.
func search(model porcupine.Model, parts [][]porcupine.Operation, timeout time.Duration) []searched {
	out := make([]searched, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() {
			var p panics
			out[i].result = porcupine.CheckOperationsTimeout(guarded(model, &p), part, timeout)
			out[i].panicked = p.text()
		})
	}
	all.Wait()
	return out
}
