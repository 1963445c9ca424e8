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

// toolSHA256 reads the running image rather than its path: the file may have
// been rebuilt since the process started.
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
