package check

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// explainWithin bounds what one description may cost, since the verdict stands
// without it. A search cut short describes the longest order it has seen.
const explainWithin = 10 * time.Second

// explain describes where the longest legal order of an illegal part ends: how
// far it got, the state there, and the first operation that fits nowhere. A
// model that cannot describe itself costs the description, never the verdict.
func explain(model porcupine.Model, part []porcupine.Operation, timeout time.Duration) (text string) {
	defer func() {
		if recover() != nil {
			text = "no legal order, and the model panicked when asked to describe it"
		}
	}()
	var p panics
	model = guarded(model, &p)
	_, info := porcupine.CheckOperationsVerbose(model, part, min(timeout, explainWithin))
	var longest []int
	for _, order := range info.PartialLinearizations()[0] {
		// Porcupine returns the orders as they come out of a map: of equally
		// long ones take the smallest, so that a report can be made again.
		if len(order) > len(longest) || len(order) == len(longest) && slices.Compare(order, longest) < 0 {
			longest = order
		}
	}
	placed := make([]bool, len(part))
	for _, i := range longest {
		placed[i] = true
	}
	stuck := -1
	for i, o := range part {
		if !placed[i] && (stuck < 0 || o.Return < part[stuck].Return) {
			stuck = i
		}
	}
	if stuck < 0 {
		return "no legal order"
	}
	return clip(fmt.Sprintf("%s fits nowhere after %d of %d operations, which leave %s",
		describe(model, part[stuck]), len(longest), len(part), stateAfter(model, part, longest)), maxExampleBytes)
}

func describe(model porcupine.Model, o porcupine.Operation) string {
	text := fmt.Sprintf("%v -> %v", o.Input, o.Output)
	if model.DescribeOperation != nil {
		text = model.DescribeOperation(o.Input, o.Output)
	}
	end := "never"
	if o.Return != never {
		end = time.Duration(o.Return).String()
	}
	return fmt.Sprintf("client %d: %s [%v, %s]", o.ClientId, text, time.Duration(o.Call), end)
}

func stateAfter(model porcupine.Model, part []porcupine.Operation, order []int) string {
	state := model.Init()
	for _, i := range order {
		_, state = model.StepContext(context.Background(), state, part[i].Input, part[i].Output)
	}
	if model.DescribeState != nil {
		return model.DescribeState(state)
	}
	return fmt.Sprint(state)
}
