//go:build linux

package spawn

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"syscall"
)

// treeRSS adds up the resident memory of a process and its descendants, in
// bytes, or that of the descendants alone. Pages shared between them count once
// for each. It reports false when the process is gone.
func treeRSS(root int, withRoot bool) (int64, bool) {
	var sum int64
	if withRoot {
		own, ok := resident(root)
		if !ok {
			return 0, false
		}
		sum = own
	}
	children := childrenOf
	if !hasChildrenFiles() {
		all := parents()
		children = func(pid int, list []int) []int { return append(list, all[pid]...) }
	}
	// Processes come and go meanwhile, so the same one could turn up twice.
	seen := map[int]bool{root: true}
	for todo := children(root, nil); len(todo) > 0; {
		pid := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		if own, ok := resident(pid); ok {
			sum += own
			todo = children(pid, todo)
		}
	}
	return sum, true
}

var pageSize = int64(os.Getpagesize())

// resident reports false for zombies too: they have no memory.
func resident(pid int) (int64, bool) {
	var buffer [256]byte
	b := readProc(buffer[:], pid, "/statm")
	fields := bytes.Fields(b)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * pageSize, err == nil && pages > 0
}

// hasChildrenFiles is whether the kernel was built with CONFIG_PROC_CHILDREN,
// as most are, but not all.
var hasChildrenFiles = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

func childrenOf(pid int, list []int) []int {
	dir := procName(pid, "/task")
	threads, err := os.ReadDir(dir)
	if err != nil {
		return list
	}
	for _, thread := range threads {
		b, err := os.ReadFile(dir + "/" + thread.Name() + "/children")
		if err != nil {
			continue
		}
		for _, field := range bytes.Fields(b) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

// parents maps every process to its children.
func parents() map[int][]int {
	all := make(map[int][]int)
	eachProcess(func(pid int, st stat) { all[st.parent] = append(all[st.parent], pid) })
	return all
}

type stat struct {
	state           byte
	parent, session int
}

func eachProcess(do func(int, stat)) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			if st, ok := readStat(pid); ok {
				do(pid, st)
			}
		}
		if err != nil {
			return
		}
	}
}

func readStat(pid int) (stat, bool) {
	var buffer [1024]byte
	b := readProc(buffer[:], pid, "/stat")
	// The second field is a name that may itself contain parentheses.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 4 {
		return stat{}, false
	}
	parent, err1 := strconv.Atoi(string(fields[1]))
	session, err2 := strconv.Atoi(string(fields[3]))
	return stat{fields[0][0], parent, session}, err1 == nil && err2 == nil
}

func procName(pid int, file string) string { return "/proc/" + strconv.Itoa(pid) + file }

// readProc avoids what os.ReadFile does for files of unknown size: this is
// called for every process, at every sample.
func readProc(buffer []byte, pid int, file string) []byte {
	fd, err := syscall.Open(procName(pid, file), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	n, err := syscall.Read(fd, buffer)
	if err != nil {
		return nil
	}
	return buffer[:n]
}

// killSession kills all processes of a session, again and again as they may
// fork meanwhile, until none is found alive.
func killSession(id int) {
	const rounds = 50
	for range rounds {
		found := false
		eachProcess(func(pid int, st stat) {
			if st.session == id && pid != id && st.state != 'Z' && st.state != 'X' {
				found = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
		if !found {
			return
		}
	}
}
