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
// Latches cannot deadlock. A plain write waits for a document's latch only while it
// holds no other document's and no key's; for keys it waits in their order. Where that
// cannot be had, in the middle of a batch, it does not wait but proposes what it
// has first. A transaction never waits for either.
package server
