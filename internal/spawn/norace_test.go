//go:build linux && !race

package spawn

const raceBuild = false
