//go:build !race

package protocol

const thorough = true
