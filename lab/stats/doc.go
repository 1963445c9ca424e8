// Package stats holds the statistics of a paired, blocked A/B experiment:
// tests of a difference, effect sizes, bootstrap intervals of latency
// quantiles, corrections for many comparisons, and the power calculations
// that decide beforehand how many rounds to run.
//
// Every function is pure, and must never know what a number measures. Nothing reads a clock or a shared source of random
// numbers: whatever is random takes a seed, and the same seed gives the same
// result on every machine and every release of Go.
//
// Throughout, a difference is treatment minus reference, a ratio is treatment
// over reference, an SD divides by n-1, and an interval's level is a
// probability such as 0.95. Invalid input is refused, never repaired: functions
// that can return an error return one of the package's sentinels, and the few
// that cannot return NaN.
//
// Results agree with R and SciPy to a relative 1e-9 for statistics and 1e-6
// for p values, however small the p value.
package stats
