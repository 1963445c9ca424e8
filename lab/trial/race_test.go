//go:build race

package trial

func init() { underRace = true }
