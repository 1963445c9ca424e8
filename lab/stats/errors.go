package stats

import (
	"errors"
	"fmt"
	"math"
)

var (
	// ErrTooFew is returned when a sample is empty or has fewer values or
	// rounds than the method needs to estimate variation.
	ErrTooFew = errors.New("stats: too few values")

	// ErrNotFinite is returned when an input is NaN or infinite, or when
	// finite inputs are so large that their difference overflows.
	ErrNotFinite = errors.New("stats: value is not finite")

	// ErrUnpaired is returned when slices that must match element by element
	// differ in length.
	ErrUnpaired = errors.New("stats: paired samples differ in length")

	// ErrOutOfRange is returned when a parameter such as a level, an alpha, a
	// power, a quantile, an SD or a count lies outside its documented range,
	// or when no answer exists inside it.
	ErrOutOfRange = errors.New("stats: parameter out of range")

	// ErrNoRatio is returned when a ratio to the reference has no meaning
	// because the reference is zero, or changes sign between resamples.
	ErrNoRatio = errors.New("stats: ratio to the reference is undefined")
)

func finite(xs ...float64) bool {
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// needValues checks that every sample has at least least values, all finite.
func needValues(least int, samples ...[]float64) error {
	for _, xs := range samples {
		if len(xs) < least {
			return fmt.Errorf("%w: have %d, need %d", ErrTooFew, len(xs), least)
		}
		if !finite(xs...) {
			return ErrNotFinite
		}
	}
	return nil
}

// needProbability checks that p lies strictly between 0 and 1.
func needProbability(name string, p float64) error {
	if p > 0 && p < 1 {
		return nil
	}
	return fmt.Errorf("%w: %s is %v, must lie between 0 and 1", ErrOutOfRange, name, p)
}
