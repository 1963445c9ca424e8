package check

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Register is the model of keys that each hold one value, the given one at
// first. It knows KindRead, KindWrite and KindCAS of [Op], and judges every key
// by itself. A cas that is maybe takes effect only where it finds what it
// expects.
//
// A refused cas is OutcomeFailed and is left out; that it saw another value
// is not used. Any other kind is a panic, which Linearizable turns into
// Unknown.
func Register(initial string) porcupine.Model {
	return porcupine.Model{
		Partition:         func(ops []porcupine.Operation) [][]porcupine.Operation { return dropUnseen(byKey(ops)) },
		Init:              func() any { return initial },
		Step:              func(state, input, _ any) (bool, any) { return stepRegister(state.(string), input.(Op)) },
		DescribeOperation: func(input, _ any) string { return input.(Op).String() },
		DescribeState:     func(state any) string { return show(state) },
	}
}

func stepRegister(held string, op Op) (legal bool, next any) {
	switch op.Kind {
	case KindRead:
		return held == op.Value, held
	case KindWrite:
		return true, op.Value
	case KindCAS:
		if held == op.Expect {
			return true, op.Value
		}
		return op.Outcome == OutcomeMaybe, held
	default:
		panic(fmt.Sprintf("a register has no operation %q", op.Kind))
	}
}

// byKey splits operations by the key of their Op, in order of appearance.
func byKey(ops []porcupine.Operation) [][]porcupine.Operation {
	var parts [][]porcupine.Operation
	place := map[string]int{}
	for _, op := range ops {
		key := op.Input.(Op).Key
		at, known := place[key]
		if !known {
			at = len(parts)
			place[key] = at
			parts = append(parts, nil)
		}
		parts[at] = append(parts[at], op)
	}
	return parts
}

// dropUnseen leaves out maybe operations whose value nothing in their part ever
// read or expected. Each doubles the orders to search, and none can decide
// anything: in a legal order no read or cas depends on such a value, so the
// operation can as well come last; and coming last it is always legal.
func dropUnseen(parts [][]porcupine.Operation) [][]porcupine.Operation {
	for i, part := range parts {
		seen := map[string]bool{}
		for _, o := range part {
			switch op := o.Input.(Op); op.Kind {
			case KindRead:
				seen[op.Value] = true
			case KindCAS:
				seen[op.Expect] = true
			}
		}
		var kept []porcupine.Operation
		for _, o := range part {
			if op := o.Input.(Op); op.Outcome != OutcomeMaybe || seen[op.Value] {
				kept = append(kept, o)
			}
		}
		parts[i] = kept
	}
	return parts
}
