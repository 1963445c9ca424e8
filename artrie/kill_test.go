package artrie

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const childEnv = "ARTRIE_KILL_CHILD"

// TestMain runs the child of TestKill when it is asked to.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		killChild(dir)
		return
	}
	os.Exit(m.Run())
}

// killChild writes until it is killed and says on its output what was acknowledged.
func killChild(dir string) {
	a, _ := strconv.Atoi(os.Getenv(childEnv + "_AS"))
	opt := arrangements()[a].options(nil)
	opt.CheckpointBytes = 16 << 10
	s, err := Open(dir, opt)
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	var out sync.Mutex
	for w := range 4 {
		go func() {
			n := 0
			for range s.Prefix(fmt.Sprintf("w%d-", w)) {
				n++
			}
			for i := n; ; i++ {
				if _, err := s.Insert(fmt.Sprintf("w%d-%06d", w, i)); err != nil {
					fmt.Println("insert:", err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Printf("ack %d %d\n", w, i)
				out.Unlock()
			}
		}()
	}
	select {}
}

// TestKill kills a writing process again and again in one folder. The page cache
// survives, so this finds holes in the logic only; power cuts are in crash_test.go.
func TestKill(t *testing.T) {
	kills := 6
	if long() {
		kills = 240
	}
	all := arrangements()
	rng := rand.New(rand.NewPCG(7, 7))
	dir := t.TempDir()
	var acked [4]int
	for kill := range kills {
		a := rng.IntN(len(all))
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir, childEnv+"_AS="+strconv.Itoa(a))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 20 + rng.IntN(400); lines.Scan(); n-- {
			var w, i int
			if _, err := fmt.Sscanf(lines.Text(), "ack %d %d", &w, &i); err != nil {
				t.Errorf("kill %d as %v: the child says %q", kill, all[a], lines.Text())
				break
			}
			acked[w] = i + 1
			if n == 0 {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait() // killed
		opt := all[a].options(nil)
		s, err := Open(dir, opt)
		if err != nil {
			t.Fatalf("kill %d as %v: %v", kill, all[a], err)
		}
		for w := range acked {
			n := 0
			for k := range s.Prefix(fmt.Sprintf("w%d-", w)) {
				if i, _ := strconv.Atoi(strings.TrimLeft(k[3:], "0") + ""); i != n && n != 0 {
					t.Fatalf("kill %d as %v: %q after %d keys", kill, all[a], k, n)
				}
				n++
			}
			if n < acked[w] || n > acked[w]+1 {
				t.Fatalf("kill %d as %v: writer %d has %d keys, %d acknowledged", kill, all[a], w, n, acked[w])
			}
			acked[w] = n
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Check(dir, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("figure: kill.kills %d kills", kills)
}
