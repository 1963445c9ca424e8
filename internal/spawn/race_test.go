//go:build linux && race

package spawn

// raceBuild: the race detector's own memory would drown what some tests
// measure.
const raceBuild = true
