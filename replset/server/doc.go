// Package server answers MongoDB's commands for one member of a set. It knows
// commands, sessions, transactions, cursors and errors. It must never know how entries
// are agreed on, nor how they lie on disk, which is behind Member and package store.
//
// # How a command runs
//
//  1. conn reads a message; dispatch finds the command in the table of
//     command.go and refuses every field that the command does not list.
//  2. Fail points, deadline, session, role, read concern: in that order, each
//     in its own file, the same for all commands.
//  3. The command (one file each) parses what it was asked and calls view to read
//     and writer to write.
//  4. dispatch completes the answer: cluster time, labels, write concern error.
//
// # How a document is written
//
// docs/replset.md, section 2. The steps are: writer.load takes the latch and
// reads the document again, the command evaluates on that, writer.set takes the
// unique keys' latches and checks them, call.commit proposes everything as
// one entry and releases the latches when its fate is known.
//
// # The order of latches
//
// There are four kinds, and they are taken in this order:
//
//		session → collections, by name → one document → its unique keys, by name
//
//	  - A command has at most one session's, which it took first. Who ends several
//	    sessions waits for each on a goroutine of its own; the removal of old records only
//	    tries.
//	  - A write has the shared latch of one collection at a time, that of its command, from
//	    before its first document until its entry is through. Also a driver's bulkWrite is
//	    such commands, one after the other. What changes the catalogue takes exclusive
//	    ones, holds nothing of a later kind, and takes several in the order of their names.
//	    To make a collection that it lacks, a write first gives back the shared latch, and
//	    cannot hold a document of a collection that did not exist.
//	  - It waits for a document's latch only while it holds no other document's and no
//	    key's, and for keys' in their order. Where that cannot be had, in the middle of a
//	    batch, it does not wait but proposes what it has first; what a statement that
//	    failed has taken is given back before the next one (batch.forget).
//	  - A transaction never waits for documents and keys. It waits for a collection no
//	    longer than Options.LockTimeout, since it may hold anything by then.
//
// So nobody waits for ever: who waits for a latch waits for its holder, or for one who
// came earlier for the same latch. Without transactions each of them waits for a latch
// later in the order, or came earlier, and such a chain has an end. A cycle must have a
// transaction in it that waits for a collection, and ends with that wait. Whether
// latches have an end does not depend on the client: a transaction ends with its
// lifetime, an entry with its term.
package server
