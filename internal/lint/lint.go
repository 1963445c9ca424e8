// Package lint holds the house rules as tests: which package may import which,
// what no package may do, and how large a file may grow. It has no code of its
// own and nothing imports it.
package lint
