//go:build linux

// Package spawn starts commands and measures them from outside, through a
// small launcher process, so that the figures are the command's own. It must
// never know what a command is for.
//
// # Why a launcher
//
// When a process calls exec, Linux notes the peak of the memory map it leaves
// behind in the figure that later becomes ru_maxrss. A child forked by a
// 400 MiB program therefore reports at least 400 MiB, whatever it runs. The
// only remedy that needs no privilege and costs the command nothing is to fork
// it from a process that has never been large. Hence the program executes
// itself once, and that process, long-lived and about as small as /bin/true,
// starts every command. It also survives the program's own death by SIGKILL
// just long enough to end what is still running.
//
// # Protocol
//
//  1. Start creates a SOCK_SEQPACKET pair and a page of shared memory and
//     executes /proc/self/exe with argv[0] "assay-launcher".
//  2. The init function of this package recognises that (argv[0], an
//     environment variable and the type of descriptor 3 must all agree), so it
//     runs before the program's own packages have grown the heap. It forks with
//     CLONE_PARENT and exits. The forked process, a child of the program, is
//     the launcher. Forking leaves behind the Go runtime's other threads and
//     every file-backed page, and the launcher gives the heap back as well:
//     what remains is one thread and some hundred KiB.
//  3. The launcher says hello with its own peak.
//  4. Run packs program, arguments, environment and directory into one request
//     whose pointer tables the launcher only has to add a base address to;
//     descriptors travel along by SCM_RIGHTS. A request names its slot and a
//     sequence number.
//  5. The launcher reads CLOCK_MONOTONIC and vforks. The child makes itself a
//     process group leader and executes the program. As it shares memory with
//     the launcher, the step and errno of a failure are simply left there.
//  6. The launcher sleeps in ppoll on its socket and a signalfd. On SIGCHLD it
//     looks at the dead child without reaping it, reads the clock, kills what
//     is left of the group and only then reaps.
//  7. When nothing of the command is left, the reply carries times, wait
//     status and resource usage. Run reads it itself, without a goroutine in
//     between, see linger.
//  8. To end a command early (time-out, cancelled context) the program sends a
//     kill request for that slot and sequence number, and then still waits for
//     the reply: Run does not return while the command is running.
//  9. End of file on the socket means that the program closed the launcher or
//     died. The launcher kills everything below it and exits.
//
// # Invariants
//
//  1. The launcher's memory does not grow: it has no heap. Everything it
//     touches is in fixed buffers, and what an unusually large request touched
//     is given back and the recorded peak reset.
//  2. The launcher does not enter the Go runtime: after the fork there are no
//     threads left to run a garbage collection or to release a lock that was
//     held. Every function it runs is marked nosplit, so none contains the
//     prologue through which the scheduler and stack growth get in, and calls
//     only functions so marked and two pieces of assembly that make system
//     calls. A test parses the source and enforces both; the linker proves that
//     the stack suffices. (An index out of range would still end in the
//     runtime, which then ends the process, which is handled like a kill.)
//  3. A signal is only sent to a pid or group number that cannot have been
//     reused: a main process is looked at with WNOWAIT and its group killed
//     while the zombie still holds the number; strays are killed while they
//     are unreaped children.
//  4. A kill request cannot hit the wrong command: slot and sequence number
//     must match a command whose main process has not been reaped.
//  5. Nothing outlives a Run unless Keep asks for it. The launcher is a child
//     subreaper, so whatever the command's processes leave behind is reparented
//     to it. First the group is killed; if children remain, everything whose
//     parent is the launcher is killed, again and again until wait reports that
//     there are no children. Each round moves one generation up, so processes
//     that left the group or the session are found as well. Their resource
//     usage is added to the command's. If even SIGKILL does not help for ten
//     seconds, Run gives up with ErrStuck.
//  6. A kept daemon cannot be mistaken for a stray: commands with Keep are
//     started by a launcher of their own, itself started when the first one
//     comes. The launcher that clears up after trials never has a kept process
//     below it, so no bookkeeping about who belongs to whom can be wrong, and
//     an idle daemon costs a trial nothing.
//  7. With several commands at once, a process that left its group cannot be
//     attributed. It is killed when the last of the overlapping commands ends;
//     its usage goes to the command that started first.
//  8. Nothing outlives the program: end of file on the socket is produced by
//     the kernel however the program dies. The parent-death signal is a second
//     line, and as it is also raised when merely a thread of the program ends,
//     the launcher answers it by looking at its parent. Commands carry
//     SIGKILL as their own parent-death signal, in case it is the launcher that
//     gets killed, and the program then ends the rest of its session.
//  9. Nothing is decided by the terminal: the launcher is in a session of its
//     own with every signal blocked. An interrupt typed at a terminal reaches
//     the program only, which decides. Commands have no controlling terminal
//     and so cannot be stopped by one; one passed to them still works.
//  10. A command starts with the signal mask, default signal handling, huge page
//     setting and descriptor limit of a child started by os/exec, not with what
//     the Go runtime or this package have set up for themselves.
//
// # Limits
//
//   - While a child is between fork and exec the launcher is suspended. If the
//     program or directory is on a file system that hangs, so do time-outs.
//   - Linux since 6.2 counts resident pages per CPU, so a peak, and the floor,
//     can be off by some 32 pages for each CPU that the process ran on.
//   - The memory and times of processes whose parents ignore SIGCHLD are
//     forgotten by the kernel.
//   - Commands that change their user cannot be killed by an ordinary user.
//   - If the launcher itself is killed, processes that have left its session
//     survive.
//
// # Alternatives rejected
//
//   - RUSAGE_CHILDREN: maximum over all children ever waited for, and has the
//     same inherited peak.
//   - ptrace exit stops (read VmHWM of each process just before it is gone):
//     exact, but each fork, exec and exit of the command stops and
//     costs two context switches, it forbids debuggers and sandboxes inside the
//     command, and containers often disallow it.
//   - cgroup memory.peak: needs a delegated cgroup, which an ordinary user in
//     a container does not have, and counts page cache and kernel memory.
//   - Sampling /proc: misses any peak between samples. It is offered
//     (SampleTree) for the sum over a tree, which nothing else gives.
//   - Executing a launcher per command: adds the start of a Go program,
//     more than what `true` takes in total.
//   - Forking without the launcher but with a small intermediate process: the
//     fork itself copies the large program's page tables, milliseconds per run.
//   - An ordinary Go launcher: three times the resident size, which exceeds that
//     of many commands, and the runtime's monitor thread keeps waking up during
//     the first milliseconds of every trial, on the machine being measured.
//   - One launcher that knows which of its children to spare: a daemon's own
//     children, once orphaned, cannot be recognised.
package spawn
