package replset_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/assaylab/assay/replset"
)

func addrOf(t *testing.T, s *replset.Set, i int) string {
	t.Helper()
	u, err := url.Parse(s.MemberURI(i))
	must(t, err)
	return u.Host
}

func TestAKilledMemberRefusesConnectionsAndComesBackAtItsAddress(t *testing.T) {
	inEachForm(t, func(t *testing.T, o replset.Options) {
		s, _ := start(t, o)
		for i := range 3 {
			must(t, s.Kill(i))
			for range 3 {
				if c, err := net.Dial("tcp", addrOf(t, s, i)); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("dialling a dead member gave %v, %v", c, err)
				}
			}
			// Nobody who wants any free port is given this one.
			for range 200 {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				must(t, err)
				if l.Addr().String() == addrOf(t, s, i) {
					t.Error("the address of a dead member was given away")
				}
				defer l.Close()
			}
			if err := s.Kill(i); err == nil {
				t.Error("a dead member was killed again")
			}
			must(t, s.Restart(i))
			c, err := net.Dial("tcp", addrOf(t, s, i))
			must(t, err)
			must(t, c.Close())
		}
	})
}

func TestAMemberStepsUp(t *testing.T) {
	inEachForm(t, func(t *testing.T, o replset.Options) {
		s, c := start(t, o)
		ctx := within(t)
		for _, i := range []int{2, 1, 1, 0} {
			must(t, s.StepUp(ctx, i))
			if p := s.Primary(); p != i {
				t.Fatalf("after %d stepped up, %d is primary", i, p)
			}
			_, err := c.Database("db").Collection("c").InsertOne(ctx, bson.M{})
			must(t, err)
		}
		must(t, s.Kill(1))
		if err := s.StepUp(ctx, 1); err == nil {
			t.Error("a dead member stepped up")
		}
		must(t, s.Partition([]int{0}, []int{1, 2}))
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		if err := s.StepUp(short, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a member without a majority stepped up: %v", err)
		}
	})
}

// A member that is isolated neither answers nor resets; afterwards it answers what it
// was sent.
func TestAnIsolatedMemberIsSilent(t *testing.T) {
	inEachForm(t, func(t *testing.T, o replset.Options) {
		s, c := start(t, o)
		ctx := within(t)
		col := c.Database("db").Collection("c")
		_, err := col.InsertOne(ctx, bson.M{"_id": 0})
		must(t, err)
		old := s.Primary()
		direct := connect(t, s.MemberURI(old), options.Client().SetTimeout(0).SetRetryReads(false))
		must(t, direct.Ping(ctx, nil))
		must(t, s.Isolate(old))
		answered := make(chan error, 1)
		go func() { answered <- direct.Ping(ctx, nil) }()
		fresh, err := net.Dial("tcp", addrOf(t, s, old))
		must(t, err)
		defer fresh.Close()
		_, err = fresh.Write(helloMessage(t))
		must(t, err)
		next, err := s.AwaitPrimary(ctx)
		must(t, err)
		if next == old {
			t.Fatal("the isolated member counts as the primary")
		}
		must(t, fresh.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		if n, err := fresh.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a new connection to an isolated member got %d bytes, %v", n, err)
		}
		select {
		case err := <-answered:
			t.Errorf("an isolated member answered a ping: %v", err)
		default:
		}
		// Others go on: through a client that knows the new primary only.
		other := connect(t, s.MemberURI(next))
		_, err = other.Database("db").Collection("c").InsertOne(ctx, bson.M{"_id": 1})
		must(t, err)
		must(t, s.Heal())
		must(t, <-answered)
		must(t, fresh.SetReadDeadline(time.Now().Add(patience)))
		if _, err := fresh.Read(make([]byte, 1)); err != nil {
			t.Errorf("after healing, what was asked meanwhile was not answered: %v", err)
		}
		awaitDocument(t, connect(t, s.MemberURI(old)), bson.M{"_id": 1})
	})
}

// A member that dies while it is isolated is isolated when it comes back.
func TestFaultsOutliveARestart(t *testing.T) {
	inEachForm(t, func(t *testing.T, o replset.Options) {
		s, _ := start(t, o)
		ctx := within(t)
		i := (s.Primary() + 1) % 3
		must(t, s.Isolate(i))
		must(t, s.Kill(i))
		must(t, s.Restart(i))
		fresh, err := net.Dial("tcp", addrOf(t, s, i))
		must(t, err)
		defer fresh.Close()
		_, err = fresh.Write(helloMessage(t))
		must(t, err)
		must(t, fresh.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
		if n, err := fresh.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it answered %d bytes, %v", n, err)
		}
		must(t, s.Heal())
		must(t, s.StepUp(ctx, i))
	})
}

// A stopped member hears of a partition when it resumes, before it can say anything
// across it.
func TestAPartitionHoldsForAMemberThatWasPaused(t *testing.T) {
	inEachForm(t, func(t *testing.T, o replset.Options) {
		s, _ := start(t, o)
		ctx := within(t)
		old := s.Primary()
		must(t, s.Pause(old))
		next, err := s.AwaitPrimary(ctx)
		must(t, err)
		must(t, s.Partition([]int{old}, []int{(old + 1) % 3, (old + 2) % 3}))
		must(t, s.Resume(old))
		if err := s.Pause(old); err != nil {
			t.Errorf("a member that was resumed cannot be paused: %v", err)
		}
		must(t, s.Heal())
		must(t, s.Resume(old))
		if err := s.Resume(old); err == nil {
			t.Error("a member that runs was resumed")
		}
		if p, err := s.AwaitPrimary(ctx); err != nil || p == old {
			t.Errorf("the primary is %d, %v; it was %d before", p, err, next)
		}
	})
}

func TestFaultsWithoutSenseAreRefused(t *testing.T) {
	inEachForm(t, func(t *testing.T, o replset.Options) {
		s, _ := start(t, o)
		ctx := within(t)
		for what, err := range map[string]error{
			"Kill(3)": s.Kill(3), "Kill(-1)": s.Kill(-1), "Restart of one that runs": s.Restart(0), "Resume of one that runs": s.Resume(0),
			"two groups": s.Partition([]int{0}, []int{0, 1}), "Cut to itself": s.Cut(1, 1), "Isolate(9)": s.Isolate(9), "StepUp(9)": s.StepUp(ctx, 9),
		} {
			if err == nil {
				t.Errorf("%s was accepted", what)
			}
		}
		must(t, s.Pause(1))
		if err := s.Pause(1); err == nil {
			t.Error("a paused member was paused")
		}
		must(t, s.Kill(1))
		must(t, s.Restart(1))
		must(t, s.Close())
		for what, err := range map[string]error{"Kill": s.Kill(0), "Heal": s.Heal(), "Pause": s.Pause(0), "Isolate": s.Isolate(0), "StepUp": s.StepUp(ctx, 0)} {
			if err == nil {
				t.Errorf("%s of a closed set was accepted", what)
			}
		}
	})
}

// descriptors is how many files and sockets this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("open descriptors are counted where /proc is: %v", err)
	}
	return len(list)
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// Whatever state the members are in, Close leaves nothing.
func TestNothingIsLeftOfASet(t *testing.T) {
	inEachForm(t, func(t *testing.T, o replset.Options) {
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		open := descriptors(t)
		s, err := replset.New(within(t), o)
		must(t, err)
		pids := s.Pids()
		must(t, s.Kill(0))
		must(t, s.Pause(1))
		must(t, s.Isolate(2))
		addrs := []string{addrOf(t, s, 0), addrOf(t, s, 1), addrOf(t, s, 2)}
		must(t, s.Close())
		must(t, s.Close())
		for _, pid := range pids {
			if pid != 0 && !gone(pid) {
				t.Errorf("process %d is left", pid)
			}
			if (pid != 0) != (o.Command != nil) {
				t.Errorf("a member has process %d", pid)
			}
		}
		for _, a := range addrs {
			l, err := net.Listen("tcp", a)
			must(t, err)
			must(t, l.Close())
		}
		if n := descriptors(t); n > open {
			t.Errorf("%d descriptors are open, %d before", n, open)
		}
		left, err := filepath.Glob(filepath.Join(temp, "*"))
		must(t, err)
		if len(left) > 0 {
			t.Errorf("%v is left", left)
		}
	})
}

func TestProcessesSayWhatTheyUse(t *testing.T) {
	s, _ := start(t, forms()["as processes"])
	was := s.PeakMemory()
	for i, n := range was {
		if n < 1<<20 || n > 1<<30 {
			t.Errorf("member %d has used %d bytes", i, n)
		}
	}
	t.Logf("peak memory of idle members: %d MiB", was[0]>>20)
	must(t, s.Kill(1))
	if now := s.PeakMemory()[1]; now < was[1] {
		t.Errorf("a dead member has used %d bytes, of %d before", now, was[1])
	}
	if pid := s.Pids()[1]; pid != 0 {
		t.Errorf("a dead member has process %d", pid)
	}
	local, _ := start(t, replset.Options{})
	for i, n := range local.PeakMemory() {
		if n != 0 {
			t.Errorf("member %d in this process says that it has used %d bytes", i, n)
		}
	}
}

// A process that dies although nobody killed it through the set is dead to the set,
// and comes back by Kill and Restart.
func TestAProcessThatDiesIsNoticed(t *testing.T) {
	s, _ := start(t, forms()["as processes"])
	ctx := within(t)
	p := s.Primary()
	must(t, syscall.Kill(s.Pids()[p], syscall.SIGKILL))
	waitFor(t, "another primary", func() bool { n := s.Primary(); return n >= 0 && n != p })
	if pid := s.Pids()[p]; pid != 0 {
		t.Errorf("the dead member has process %d", pid)
	}
	must(t, s.Kill(p))
	must(t, s.Restart(p))
	must(t, s.StepUp(ctx, p))
}

func TestAProgramThatIsNoMemberIsRefused(t *testing.T) {
	for want, command := range map[string][]string{
		"no such file":     {filepath.Join(t.TempDir(), "absent")},
		"Command is empty": {},
		"it said: out":     {"sh", "-c", "echo out >&2; exit 3"},
		"exit status 3":    {"sh", "-c", "exit 3"},
		"RunMember":        {"sh", "-c", "cat & echo hello; wait"},
		"exit status 0":    {"true"},
	} {
		_, err := replset.New(within(t), replset.Options{Command: command})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the command %q gave %v; want word of %q", command, err, want)
		}
	}
}

// A set whose own process is killed takes its members with it, stopped ones too.
func TestADeadSetLeavesNoMember(t *testing.T) {
	parent := exec.Command(os.Args[0], parentArg)
	in, err := parent.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := parent.StdoutPipe()
	must(t, err)
	must(t, parent.Start())
	var pids []int
	if err := json.NewDecoder(out).Decode(&pids); err != nil || len(pids) != 3 {
		t.Errorf("the set has the processes %v, %v", pids, err)
	}
	must(t, parent.Process.Kill())
	_ = parent.Wait()
	for _, pid := range pids {
		waitFor(t, "the end of a member", func() bool { return gone(pid) })
	}
}

// ownSet is what the test program does as parentArg: it runs a set until it is killed.
func ownSet() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := replset.New(ctx, forms()["as processes"])
	if err != nil {
		return err
	}
	if err := s.Pause(1); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(s.Pids()); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, s.Close())
}
