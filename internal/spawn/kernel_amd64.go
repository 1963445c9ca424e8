//go:build linux

package spawn

// sysMemfdCreate is missing from the frozen table of package syscall.
const sysMemfdCreate = 319
