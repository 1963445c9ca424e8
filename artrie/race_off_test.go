//go:build !race

package artrie

const raceEnabled = false
