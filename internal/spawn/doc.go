//go:build linux

// Package spawn starts commands and measures them from outside, through a
// small launcher process, so that the figures are the command's own.
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
//  1. Start creates a SOCK_SEQPACKET pair and one page of shared memory and
//     executes /proc/self/exe with argv[0] "assay-launcher".
//  2. The init function of this package recognises that (argv[0], an
//     environment variable and the type of descriptor 3 must all agree), so it
//     runs before the program's own packages have grown the heap. It forks with
//     CLONE_PARENT and exits. The forked process, a child of the program, is
//     the launcher. Forking leaves behind the Go runtime's other threads, its
//     timers and every file-backed page: what remains is one thread and a few
//     hundred KiB.
//  3. The launcher says hello with its pid and its own peak.
//  4. Run packs program, arguments, environment and directory into one request
//     whose pointer tables the launcher only has to add a base address to;
//     descriptors travel along by SCM_RIGHTS. A request names its slot and a
//     sequence number.
//  5. The launcher reads CLOCK_MONOTONIC, vforks, and the child makes itself a
//     process group leader and executes the program. If any step fails, step
//     and errno are left in the shared page, the only memory that both kinds
//     of fork share, and sent back.
//  6. The launcher sleeps in ppoll on its socket and a signalfd. On SIGCHLD it
//     looks at the dead child without reaping it, reads the clock, kills what
//     is left of the group and only then reaps.
//  7. When nothing of the command is left, the reply carries times, wait
//     status and resource usage.
//  8. To end a command early (time-out, cancelled context) the program sends a
//     kill request for that slot and sequence number, and then still waits for
//     the reply: Run never returns while the command is running.
//  9. End of file on the socket means that the program closed the launcher or
//     died. The launcher kills everything below it and exits.
//
// # Invariants
//
//  1. The launcher's memory does not grow: it has no heap. Everything it
//     touches is in fixed buffers, and what an unusually large request touched
//     is given back and the recorded peak reset.
//  2. The launcher never enters the Go runtime: after the fork there are no
//     threads left to run a garbage collection or to release a lock that was
//     held. Every function it runs is marked nosplit, so none contains the
//     prologue through which the scheduler and stack growth get in, and calls
//     only functions so marked or raw system calls. A test parses the source
//     and enforces both.
//  3. A signal is only sent to a pid or group number that cannot have been
//     reused: a main process is looked at with WNOWAIT and its group killed
//     while the zombie still holds the number; strays are killed while they
//     are unreaped children.
//  4. A kill request cannot hit the wrong command: slot and sequence number
//     must match a command that has not been reaped.
//  5. Nothing outlives a Run unless Keep asks for it. The launcher is a child
//     subreaper, so whatever the command's processes leave behind is reparented
//     to it. First the group is killed; if children remain, everything whose
//     parent is the launcher is killed, again and again until wait reports that
//     there are no children. Each round moves one generation up, so processes
//     that left the group or the session are found as well. Their resource
//     usage is added to the command's.
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
//     the program only, which decides.
//  10. A command starts with the signal mask, ignored signals and descriptor
//     limit that the program was started with, not the ones that the Go runtime
//     has set up since.
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
//   - An ordinary Go launcher: three times the resident size, and the runtime's
//     monitor thread wakes up to fifty times in the first millisecond of every
//     trial, on the machine being measured.
package spawn
