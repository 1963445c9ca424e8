package check

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Dictionary is the model of keys that are absent at first and can be put,
// inserted, deleted and read: KindGet, KindPut, KindInsert and KindDelete of
// [Op]. A set is a dictionary whose values are all empty. Every key is judged by
// itself, so it is not for operations that see several keys at once, such as
// scans.
//
// An insert that is maybe takes effect only where the key is absent, and its
// Found, like that of a maybe delete, means nothing. Any other kind is a panic,
// which Linearizable turns into Unknown.
func Dictionary() porcupine.Model {
	return porcupine.Model{
		Partition:         byKey,
		Init:              func() any { return slot[string]{} },
		Step:              func(state, input, _ any) (bool, any) { return stepDictionary(state.(slot[string]), input.(Op)) },
		DescribeOperation: func(input, _ any) string { return input.(Op).String() },
		DescribeState: func(state any) string {
			if held := state.(slot[string]); held.present {
				return show(held.value)
			}
			return "absent"
		},
	}
}

func stepDictionary(held slot[string], op Op) (legal bool, next any) {
	answered := op.Outcome == OutcomeMaybe || op.Found == held.present
	switch op.Kind {
	case KindGet:
		return answered && (!held.present || held.value == op.Value), held
	case KindPut:
		return true, slot[string]{value: op.Value, present: true}
	case KindInsert:
		if held.present {
			return answered, held
		}
		return answered, slot[string]{value: op.Value, present: true}
	case KindDelete:
		return answered, slot[string]{}
	default:
		panic(fmt.Sprintf("a dictionary has no operation %q", op.Kind))
	}
}
