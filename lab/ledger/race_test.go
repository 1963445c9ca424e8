//go:build race

package ledger

func init() { underRace = true }
