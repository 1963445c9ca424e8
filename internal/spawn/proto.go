//go:build linux

package spawn

// Both ends are the same executable on the same machine, so the structures
// below travel as they lie in memory.

const (
	// argv0 and envMark must both be present, and descriptor sockFD a
	// sequenced-packet socket, for a process to become a launcher.
	argv0    = "assay-launcher"
	envMark  = "ASSAY_LAUNCHER"
	envValue = "socket-on-3"

	sockFD   = 3
	sharedFD = 4

	// slots bounds how many commands run at once; further ones wait in the
	// program.
	slots = 64

	// maxFDs is the width of request.given.
	maxFDs = 64

	// packet keeps one packet well below the default socket buffer.
	packet = 64 << 10

	// maxRequest leaves room beyond the 6 MiB that Linux takes for arguments
	// and environment at most, so that its own answer, E2BIG, is what a
	// caller sees.
	maxRequest = 16 << 20
)

type request struct {
	kind  uint32
	slot  uint32
	seq   uint64
	size  uint64 // of the whole request, which may span packets
	keep  uint64
	path  uint64 // offsets from the start of the request
	dir   uint64
	argv  uint64
	envp  uint64
	words uint64 // entries of both tables, terminators included
	given uint64 // bit i: a descriptor for i is passed
}

const (
	askRun = iota + 1
	askKill
)

type reply struct {
	kind   uint32
	slot   uint32
	seq    uint64
	start  int64
	end    int64
	use    usage
	floor  int64
	pid    int32
	status uint32
	stage  int32
	errno  int32
	killed uint32
	stuck  uint32
}

const (
	sayHello = iota + 1
	sayDone
	sayFailed
)

// usage is what can be added up over several processes (except for peak).
type usage struct {
	user, system int64 // nanoseconds
	peak         int64 // bytes
	minor, major int64
	in, out      int64
	vol, invol   int64
}

// shared is the memory that both processes see, which spares messages for what
// is rarely asked.
type shared struct {
	pid  int32        // of the launcher, as soon as it exists
	thp  int32        // huge pages are off for the launcher but not for commands
	pids [slots]int32 // main processes; zero once dead, before the number is free
}

const (
	stageFork = iota + 1
	stageGroup
	stageFiles
	stageDir
	stageExec
)
