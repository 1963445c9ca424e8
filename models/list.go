package main

// model is one Promela file and the ways to compile it.
type model struct {
	file string
	// safe are the switches of each variant; "" for none. A variant must have no error.
	safe []string
	// unsafe are the twins: each must break the invariant that it names.
	unsafe []twin
}

type twin struct{ switches, breaks string }

// models is the list. A new model is a file and an entry here.
func models() []model {
	return []model{
		{
			file: "publish.pml",
			safe: []string{"", "CAS", "RELAXED"},
			unsafe: []twin{
				{"FRONTIER", "C5"},
				{"VISIBLE_FIRST", "C1"},
				{"RETRY_SYNC", "C6"},
				{"CAS ROOT_FIRST", "C5"},
				{"CAS NO_STRIPE", "C4"},
				{"NO_NODE_SYNC", "K1"},
				{"NO_TMP_SYNC", "K2"},
				{"RECLAIM_EARLY", "K2"},
				{"REUSE_NAMES", "K6"},
				{"NO_OPEN_SYNC", "K7"},
				{"RELAXED NO_LOG_SYNC", "K7"},
			},
		},
		{
			file: "evict.pml",
			safe: []string{"", "NO_APPLY", "OWNED"},
			unsafe: []twin{
				{"BLIND", "E1"},
				{"OWNED IN_PLACE", "N3"},
				{"EVICT_PENDING", "K4"},
			},
		},
		{
			file: "fault.pml",
			safe: []string{"", "TWO", "FREE", "FREE TWO", "CAS", "OWNED"},
			unsafe: []twin{
				{"OVERWRITE", "E1"},
				{"OWN_SLOT", "B1"},
				{"FREE STORE", "E1"},
				{"CAS CAS_SHARED", "B1"},
				{"OWNED EVICT_SHARED", "B1"},
				{"OWNED SNAPSHOT_KEEPS", "B1"},
			},
		},
	}
}
