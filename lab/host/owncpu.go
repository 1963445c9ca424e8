package host

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// OwnCPU is the CPU time, user and system, that a process and its whole tree
// have used so far: what was reaped and what is alive. It is negative where
// that cannot be told: no such process, a tree that changed at every look, or
// a child that this user may not see. Resolution is 10 ms for each process.
//
// A process that left the tree (a daemon whose parent ended) takes its time
// with it.
func (m Machine) OwnCPU(pid int) time.Duration {
	const looks = 8
	for range looks {
		ticks, err := m.tree(pid)
		if err == nil {
			return time.Duration(ticks) * jiffy
		}
		if !errors.Is(err, errMoved) {
			break
		}
	}
	return -1
}

var errMoved = errors.New("the process tree changed while it was read")

// tree lists the children of each process before it reads the process. A child
// that is reaped in between has then vanished when its turn comes, which is
// seen; in any other order its time would be missed or counted twice.
func (m Machine) tree(pid int) (ticks uint64, err error) {
	room := buffers.Get().(*[]byte)
	defer buffers.Put(room)
	buf := *room
	todo, seen := []int{pid}, map[int]bool{pid: true}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		children, err := m.children(p, buf)
		if errors.Is(err, errNoList) {
			return m.treeByParent(pid, buf)
		}
		if err != nil {
			return 0, err
		}
		s, err := m.process(p, buf)
		if err != nil {
			if p != pid {
				return 0, errMoved
			}
			return 0, err
		}
		ticks += s.ticks
		for _, c := range children {
			if !seen[c] {
				seen[c] = true
				todo = append(todo, c)
			}
		}
	}
	return ticks, nil
}

var errNoList = errors.New("the kernel lists no children")

// children asks each thread, since a child belongs to the thread that made it.
func (m Machine) children(pid int, buf []byte) (children []int, err error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(m.path(dir))
	if err != nil {
		// Whether the process is gone shows when it is read itself.
		return nil, nil
	}
	for _, t := range threads {
		b, err := m.read(dir+"/"+t.Name()+"/children", buf)
		if err != nil {
			if t.Name() == strconv.Itoa(pid) && errors.Is(err, fs.ErrNotExist) && m.exists(dir+"/"+t.Name()+"/stat") {
				return nil, errNoList
			}
			continue
		}
		if len(b) == len(buf) {
			return nil, errors.New("too many children")
		}
		for _, f := range bytes.Fields(b) {
			c, ok := parseUint(f)
			if !ok || c > 1<<31 {
				return nil, errors.New("unreadable list of children")
			}
			children = append(children, int(c))
		}
	}
	return children, nil
}

func (m Machine) exists(p string) bool {
	_, err := os.Stat(m.path(p))
	return err == nil
}

// treeByParent is for kernels without lists of children. It reads every
// process of the machine.
func (m Machine) treeByParent(pid int, buf []byte) (ticks uint64, err error) {
	entries, err := os.ReadDir(m.path("/proc"))
	if err != nil {
		return 0, err
	}
	all := map[int]process{}
	for _, e := range entries {
		if p, err := strconv.Atoi(e.Name()); err == nil {
			if s, err := m.process(p, buf); err == nil {
				all[p] = s
			}
		}
	}
	// Here a child can be reaped before its own turn and after its parent's,
	// or the other way round, so the list must stand still.
	for p, s := range all {
		if !below(all, p, pid) {
			continue
		}
		if again, err := m.process(p, buf); err != nil || again.reaped != s.reaped {
			return 0, errMoved
		}
		ticks += s.ticks
	}
	if _, ok := all[pid]; !ok {
		return 0, fs.ErrNotExist
	}
	return ticks, nil
}

func below(all map[int]process, p, top int) bool {
	for range len(all) {
		if p == top {
			return true
		}
		s, ok := all[p]
		if !ok {
			return false
		}
		p = s.parent
	}
	return false
}

type process struct {
	parent int
	ticks  uint64 // own and reaped
	reaped uint64
}

func (m Machine) process(pid int, buf []byte) (p process, err error) {
	b, err := m.read("/proc/"+strconv.Itoa(pid)+"/stat", buf)
	if err != nil {
		return p, err
	}
	// A program may have blanks and brackets in its name.
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	const parent, user, system, reapedUser, reapedSystem = 1, 11, 12, 13, 14
	if len(f) <= reapedSystem {
		return p, errors.New("short stat of a process")
	}
	v, ok := parseUint(f[parent])
	if !ok || v > 1<<31 {
		return p, errors.New("unreadable stat of a process")
	}
	p.parent = int(v)
	for _, i := range []int{user, system, reapedUser, reapedSystem} {
		v, ok := parseUint(f[i])
		if !ok || v > 1<<48 {
			return p, errors.New("unreadable stat of a process")
		}
		p.ticks += v
		if i >= reapedUser {
			p.reaped += v
		}
	}
	return p, nil
}
