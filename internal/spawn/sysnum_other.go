//go:build linux && (arm64 || riscv64 || loong64)

package spawn

// sysMemfdCreate is missing from the frozen tables of package syscall.
const sysMemfdCreate = 279
