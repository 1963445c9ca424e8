package replset

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assaylab/assay/replset/member"
	"github.com/assaylab/assay/replset/server"
)

// Timing is how fast a set finds out that a member is gone.
type Timing int

const (
	// Fast elects a new primary within about 300 ms. It is for tests.
	Fast Timing = iota
	// MongoDB has the times of a deployed set: heartbeats of 2 s, elections after
	// 10 to 11.5 s.
	MongoDB
)

// Options are what a set is made of. The zero value is three members in memory.
type Options struct {
	Members int    // 1 to 7; 0 is 3
	Name    string // of the set; "" is rs0
	Dir     string // where members keep their data; "" is in memory, or with Command a temporary folder that Close removes
	Host    string // listened on and told to clients; "" is 127.0.0.1
	Port    int    // of the first member, the others follow; 0 is any free ports
	Timing  Timing

	// Command starts one member as a process of its own, a program that calls
	// RunMember. The members' kills and pauses are then SIGKILL and SIGSTOP. nil is
	// members in this process.
	Command []string

	// Users are who may log in, by name, with their passwords; they are users of the
	// database admin. With any, every command but the handshake needs a login
	// (SCRAM-SHA-256). Passwords are kept as salted credentials only, and are not in
	// URI. nil lets everybody in.
	Users map[string]string
	// TLS is what clients speak; nil is none. Of members as processes it may have
	// certificates and versions only. Links between members, on loopback, are
	// authenticated and not encrypted.
	TLS *tls.Config

	// NoSync answers writes before they are on disk. A kill then loses what it
	// would not lose otherwise; a report of figures must say so.
	NoSync bool
	// LoseUnsynced makes a kill of a member in memory lose what it had not synced, as
	// a power failure does. Each sync then costs a copy of the log.
	LoseUnsynced bool
	// LinearizableByWrite lets a linearizable read commit a no-op, as MongoDB does,
	// so that a benchmark carries that cost. Otherwise a majority is asked.
	LinearizableByWrite bool
	// ChangeHistory is how many bytes of events each member keeps for change streams; 0 is
	// 16 MiB. Each event is a copy of what was written. A stream that resumes from a place
	// behind it gets error 286 (ChangeStreamHistoryLost). A member trims its own within a
	// second, the oldest first, so that it may have a little more.
	ChangeHistory int64
	// TransactionLifetime ends a transaction that is open for longer; 0 is 60 s.
	TransactionLifetime time.Duration

	hooks hooks
}

func (o *Options) check() error {
	if o.Members == 0 {
		o.Members = 3
	}
	if o.Members < 1 || o.Members > 7 {
		return fmt.Errorf("replset: %d members; a set has 1 to 7", o.Members)
	}
	if o.Name == "" {
		o.Name = "rs0"
	}
	if strings.ContainsAny(o.Name, "/?&=# ") {
		return fmt.Errorf("replset: the name %q does not fit a URI", o.Name)
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.Command != nil && len(o.Command) == 0 {
		return errors.New("replset: Command is empty; it is a program that calls RunMember, and its arguments, or nil")
	}
	if o.LoseUnsynced && (o.NoSync || o.Dir != "" || o.Command != nil) {
		return errors.New("replset: LoseUnsynced is for members in memory that sync")
	}
	if o.ChangeHistory < 0 {
		return fmt.Errorf("replset: a change history of %d bytes; it is at least 1, or 0 for the default", o.ChangeHistory)
	}
	if o.Port < 0 || o.Port+o.Members > 1<<16 {
		return fmt.Errorf("replset: port %d; ports of %d members must fit below 65536", o.Port, o.Members)
	}
	if t := o.TLS; t != nil && len(t.Certificates) == 0 && t.GetCertificate == nil && t.GetConfigForClient == nil {
		return errors.New("replset: TLS has no certificate")
	}
	return nil
}

// config is what all members have in common.
func (o *Options) config() (member.Config, error) {
	c := member.Config{
		Name: o.Name, NoSync: o.NoSync, KeepEntries: o.hooks.keepEntries, Defect: o.hooks.defect,
		ChangeHistory: o.ChangeHistory,
		Server: server.Options{
			LinearizableByWrite: o.LinearizableByWrite, TransactionLifetime: o.TransactionLifetime,
			SessionTimeout: o.hooks.sessionTimeout, LockTimeout: o.hooks.lockTimeout, Defect: o.hooks.defect,
		},
	}
	for _, name := range slices.Sorted(maps.Keys(o.Users)) {
		u, err := server.NewUser(name, o.Users[name])
		if err != nil {
			return c, fmt.Errorf("replset: %w", err)
		}
		c.Server.Users = append(c.Server.Users, u)
	}
	if c.TLS = o.TLS; c.TLS != nil && o.Command != nil {
		var err error
		if c.PackedTLS, err = member.PackTLS(o.TLS); err != nil {
			return c, fmt.Errorf("replset: TLS of members as processes: %w", err)
		}
	}
	switch o.Timing {
	case MongoDB:
		c.Tick, c.ElectionTicks, c.HeartbeatTicks = 50*time.Millisecond, 200, 40
		c.ElectionSpread = 30 // 15 % of the timeout
		c.Server.HeartbeatMillis, c.Server.ElectionMillis = 2000, 10_000
	default:
		// It tolerates that the process stands still for a moment: an election takes
		// 10 to 20 ticks without a heartbeat.
		c.Tick, c.ElectionTicks, c.HeartbeatTicks = 15*time.Millisecond, 10, 1
		c.Server.HeartbeatMillis, c.Server.ElectionMillis, c.Server.LongestHello = 15, 150, 500*time.Millisecond
	}
	return c, nil
}
