package replset

// MemberState is what a member is at a moment, as the set sees it.
type MemberState struct {
	Address  string // for clients
	State    string // primary, secondary, paused, down, or failed
	Term     uint64 // that it knows
	Isolated bool
	Pid      int    // 0 in this process or down
	Failure  string // why it has failed
}

// Members returns the state of all members, in order.
func (s *Set) Members() []MemberState {
	out := make([]MemberState, len(s.members))
	for i, m := range s.members {
		r, up := m.role()
		o := MemberState{Address: m.addr, State: "secondary", Term: r.Term, Isolated: m.isolated.Load(), Pid: m.pid()}
		err := m.err()
		switch {
		case err != nil:
			o.State, o.Failure = "failed", err.Error()
		case !up:
			o.State = "down"
		case m.paused.Load():
			o.State = "paused"
		case r.Writable:
			o.State = "primary"
		}
		out[i] = o
	}
	return out
}
