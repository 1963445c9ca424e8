// Package defect names the defects that studies and tests plant in a subject to see
// that the checks find them. Nothing outside this module can make one, so a
// program that uses a subject cannot turn one on. It must never know how a
// defect is carried out.
package defect

// Defect is a planted defect; the zero value is none.
type Defect struct{ name string }

func (d Defect) String() string { return d.name }

// LostDelta folds an entry into a receipt but not into the rows.
func LostDelta() Defect { return Defect{"lost-delta"} }

// DoubleApply adds moves to the rows in a step of its own, after which the worker
// dies once; the next attempt finds the entries and applies them again.
func DoubleApply() Defect { return Defect{"double-apply"} }

// IgnoredVersion saves whatever the study's version is.
func IgnoredVersion() Defect { return Defect{"ignored-version"} }

// ExtraCommand reads the study once more before a fold writes it.
func ExtraCommand() Defect { return Defect{"extra-command"} }

// MiscountedConflict reports a conflict that statistics caused as one of the study.
func MiscountedConflict() Defect { return Defect{"miscounted-conflict"} }
