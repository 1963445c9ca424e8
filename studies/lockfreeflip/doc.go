// Package lockfreeflip is the study that decides whether a durable radix trie
// under one lock may be replaced, for good, by a lock-free overlay. Its subject
// is artrie in two modes; its protocols stand in the folder protocols.
//
// It must never know how artrie works inside: it sees the public store and the
// file system that it hands to it.
//
// # Reading the source
//
// plan.go reads what a trial shall do; arm.go takes it from its start content to
// its figures: image.go lays the content down, round.go drives writers, readers and the checkpointer, and
// verdict.go judges what is left. power.go is the file system below the store.
//
// # What makes a figure mean something
//
// A throughput of durable writes is worth nothing if the writes are not
// durable, or if an arm waits for fewer syncs than it should. So the file
// system below the store keeps, beside the files, what a power failure would
// leave of them, and every round ends in one:
//
//   - P1 Bytes that no completed sync covers are taken back. A sync covers what
//     was written before it was called.
//   - P2 Names that no completed sync of the folder covers are taken back, and
//     removals are kept. A real failure may keep any subset of the changes of
//     names; this one is the worst for whoever forgot a sync.
//   - P3 The failure comes at the moment of the last acknowledgement, with a
//     checkpoint under way as often as not.
//
// After it the store must open and hold exactly what it held at the start and
// what was acknowledged. That catches an acknowledgement without a sync, a
// checkpoint that leaves something out, and an eviction that drops what is not
// on disk, whichever layer did it.
//
// Two properties cannot be seen at the end, since by then everything may have
// become durable. For them each write to the log has a number, and the
// watermark is the highest number below which every write is covered by a sync
// that has returned. It only grows.
//
//   - P4 acknowledged is durable. A writer reads the watermark after its insert
//     has returned; the write that has its key must be at or below it.
//   - P5 visible is durable. A reader asks for keys whose insert is under way.
//     If it finds one, it reads the watermark, and the same must hold. The
//     watermark is read after the answer, so a sync that ends in between hides a
//     violation: one observation proves little. A store that shows what is not
//     synced does so for the length of a sync, thousands of times as long as
//     that gap, and a round has hundreds of observations.
//
// Which write has which key is found after the round in copies of what was
// written, by the bytes of the key. If the log's format comes to hide them, no
// key is found, and the checks are unknown rather than passed.
//
// The watermark stands for the crash image at the time of the read: what is at
// or below it is in every image, and what is above it is in none that loses all
// it may. Making the images themselves, thousands a round, would be the same
// comparison at a thousand times the price.
package lockfreeflip
