//go:build race

package protocol

// thorough is false where the race detector makes everything ten times slower
// and, since nothing here runs at the same time, finds nothing.
const thorough = false
