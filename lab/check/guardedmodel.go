package check

import (
	"context"
	"fmt"
	"sync"

	"github.com/anishathalye/porcupine"
)

// panics keeps the first panic of a model. Porcupine steps models in
// goroutines of its own, where a panic would end the process and no caller
// could recover it.
type panics struct {
	mu    sync.Mutex
	first string
}

func (p *panics) catch() {
	if caught := recover(); caught != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.first == "" {
			p.first = clip(fmt.Sprintf("the model panicked: %v", caught), maxExampleBytes)
		}
	}
}

func (p *panics) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.first
}

// guarded returns model for a single part, with every function that porcupine
// calls during the search caught by p. A function that panicked returns its zero
// value; whoever reads the outcome must look at p first.
func guarded(model porcupine.Model, p *panics) porcupine.Model {
	init, step, stepContext, equal, hash := model.Init, model.Step, model.StepContext, model.Equal, model.Hash
	model.Partition = nil
	model.Init = func() any { defer p.catch(); return init() }
	model.Step = nil
	model.StepContext = func(ctx context.Context, state, input, output any) (bool, any) {
		defer p.catch()
		if stepContext != nil {
			return stepContext(ctx, state, input, output)
		}
		return step(state, input, output)
	}
	model.Equal = func(a, b any) bool {
		defer p.catch()
		if equal != nil {
			return equal(a, b)
		}
		return a == b
	}
	if hash != nil {
		model.Hash = func(state any) uint64 { defer p.catch(); return hash(state) }
	}
	return model
}
