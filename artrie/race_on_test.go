//go:build race

package artrie

// raceEnabled: sweeps that one goroutine plays take longer strides under the race
// detector, which has nothing to find in them. The usual run takes the short ones.
const raceEnabled = true
