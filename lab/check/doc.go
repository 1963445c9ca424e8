// Package check judges correctness: verdicts that fail closed, and checkers
// over plain values.
//
// A checker takes a finished history and returns a [Result]. Results of many
// trials meet in [Clear], which makes the one proof that a consumer accepts, a
// valid [Clearance]. On the way, [Guard] turns a crash of a judge into
// [Unknown], and [Result.Require] does the same to a pass that proves too
// little.
//
//   - [SetExact]: a set after a crash; finds what is lost, resurrected,
//     unexpected, twice there or torn.
//   - [MapExact]: the same with values; also finds wrong and outdated ones.
//   - [Staleness]: reads of growing revisions; finds stale, invented and future
//     ones.
//   - [Linearizable]: timed operations on any model; finds answers that no order
//     explains. [Register] and [Dictionary] are models, [Op] their operation.
//
// Every checker states its model, what it assumes, what it is not for, and
// what a history must hold before a pass means anything; below that it says
// Unknown. A history that contradicts itself, or contradicts an assumption, is
// Unknown too: it proves nothing about the system.
//
// The package is pure. It reads no clock, draws no random number and does no
// input or output; the timer of Linearizable, inside porcupine, is the one
// exception. It must never know arms, metrics
// or effects.
package check
