package peak

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

const size = 64 << 20

func TestThePeakGrowsAndBeginsAnew(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux keeps the figure")
	}
	before := mine(t)
	b := make([]byte, size)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	high := mine(t)
	runtime.KeepAlive(b)
	if high < before+size*9/10 {
		t.Errorf("%d bytes before, %d after %d were touched", before, high, size)
	}
	b = nil
	debug.FreeOSMemory()
	if err := Reset(); err != nil {
		t.Skip("this kernel does not set it back: ", err)
	}
	if low := mine(t); low > high-size/2 {
		t.Errorf("%d bytes after it was set back, %d before", low, high)
	}
}

func TestAProcessThatIsNotThereHasNone(t *testing.T) {
	if n, err := Of(1 << 30); err == nil {
		t.Errorf("%d bytes", n)
	}
}

func mine(t *testing.T) int64 {
	t.Helper()
	n, err := Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return n
}
