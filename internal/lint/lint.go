// Package lint holds the house rules as tests: which package may import which,
// what no package may do, how large a file may grow, and that what the pages name is
// there. It must never know what a package does. It has no code of its own, and
// nothing imports it.
package lint
