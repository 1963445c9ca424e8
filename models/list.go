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
			safe: []string{"", "CAS", "RELAXED", "DAMAGE"},
			unsafe: []twin{
				{"FRONTIER", "C5"},
				{"VISIBLE_FIRST", "C1"},
				{"RETRY_SYNC", "C6"},
				{"CAS ROOT_FIRST", "C5"},
				{"CAS NO_STRIPE", "C4"},
				{"NO_NODE_SYNC", "K1"},
				{"NO_SLOT_SYNC", "K2"},
				{"NO_FOLDER_SYNC", "K2"},
				{"ONE_SLOT", "K2"},
				{"RECLAIM_EARLY", "K2"},
				{"DAMAGE RECLAIM_LAST", "K2"},
				{"DAMAGE REUSE_NAMES", "K6"},
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
		{
			file: "fold.pml",
			safe: []string{"", "JUNK", "DROP", "CONTROL_LATE NO_ENTRY_FILTER", "CONTROL_LATE NO_UNIQUE", "NO_ENTRY_FILTER NO_UNIQUE"},
			unsafe: []twin{
				{"IGNORE_VERSION", "S1"},
				{"SPLIT", "S3"},
				{"VERSION_ONLY", "F3"},
				{"NO_FOLDS", "S2"},
				{"RECEIPT_FIRST", "F4"},
				{"CONTROL_LATE NO_ENTRY_FILTER NO_UNIQUE", "S4"},
				{"JUNK CONTROL_LATE", "W4"},
				{"DROP NO_ENTRY_FILTER", "W2"},
				{"EMPTY", "S5"},
				{"RECEIPT_APART", "S5"},
				{"ROWS_LATER", "S4"},
				{"JUNK DISCARD", "W4"},
				{"NO_TIMESTAMP", "S6"},
			},
		},
		{
			file: "outcome.pml",
			safe: []string{"", "TRANSACTION", "FAILOVER"},
			unsafe: []twin{
				{"NO_FENCE", "S10"},
				{"BLIND_FENCE", "S10"},
				{"RECEIPT_FIRST", "S10"},
				{"NO_COUNT", "S10"},
				{"RANGE_LATE", "S10"},
				{"HORIZON_LATE", "S10"},
				{"FAILOVER LOCAL_RESOLVE", "S10"},
				{"FAILOVER LOCAL_DUPLICATE", "F5"},
			},
		},
		{
			file: "mode.pml",
			safe: []string{"", "REBUILDER", "OWNERS"},
			unsafe: []twin{
				{"NO_WAIT", "S15"},
				{"NO_DEADLINE", "S15"},
				{"NO_RESTATE", "S6"},
				{"REBUILDER ANYONE", "S6"},
				{"OWNERS STALE_OWNER", "S12"},
				{"NO_LEDGER", "S15"},
			},
		},
	}
}
