package host

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
)

// FileSHA256 is the SHA-256 of a file's content in lower-case hexadecimal. It
// refuses what is not a regular file.
func FileSHA256(path string) (string, error) {
	i, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !i.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// ToolSHA256 is the SHA-256 of the running program, which is read once. It reads the running image
// rather than its path: the file may have been rebuilt since the process started. A large program takes some
// tens of milliseconds; who needs it later may have it called beside what comes before.
func ToolSHA256() (string, error) { return toolSHA256() }

var toolSHA256 = sync.OnceValues(func() (string, error) {
	if h, err := FileSHA256("/proc/self/exe"); err == nil {
		return h, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	return FileSHA256(path)
})
