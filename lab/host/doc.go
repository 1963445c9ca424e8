// Package host says whether the machine was quiet enough for timings to be
// trusted, and records which machine and build they were taken on.
//
// Every probe answers ok, bad or unavailable, never a guess: what a kernel, a
// container or a permission hides is unavailable, and the limits of a protocol
// say what follows from that.
//
// It must never know of arms, trials or results. A judgement about the machine
// that could see what was measured could be bent by it.
package host
