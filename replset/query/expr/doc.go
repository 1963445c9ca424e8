// Package expr is MongoDB's aggregation expressions: parsed once, evaluated for
// each document. Whatever an expression needs from outside (time, random numbers,
// the variables of a command) is in Vars; there is no other input.
//
// It must never know what a filter or a stage does with a value.
//
// An operator is a row of a table: eager ones (table.go) get their arguments
// evaluated, the special forms (parse.go) decide themselves what to evaluate. An
// operator that is in neither is an error when the expression is parsed.
package expr
