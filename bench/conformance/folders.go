package main

// folder is a group of the driver's tests.
type folder struct {
	name  string
	short bool // runs in CI
	parts []part
}

// part is one run of a test binary.
type part struct {
	binary string // unified or integration: which package of the driver
	tests  string // the pattern of test functions
	skip   string // the pattern of those among them that are left out
	data   string // the folder of JSON in the module, "" if the tests need none
	slot   string // where the binary looks for it
}

// legacySlot is the only folder that the older of the two runners looks into.
// What it reads there can be any folder of that format.
const legacySlot = "read-write-concern/tests/operation"

func legacy(data string) part {
	return part{binary: "integration", tests: "^TestUnifiedSpecs$", data: data, slot: legacySlot}
}

func unified(data, slot string) part {
	return part{binary: "unified", tests: "^TestUnifiedSpec$/^" + slotPattern(slot), data: data, slot: slot}
}

func prose(tests string) part { return part{binary: "integration", tests: tests} }

// unsteady are tests that look at the order of events within the driver itself, which its own goroutines may
// change, and why. One that fails is run again, alone, and fails if it fails unsteadyRuns times.
var unsteady = map[string]string{
	"prose/TestRetryableWritesProse/PoolClearedError_retryability": "two threads of the driver report to one monitor; a server that answers its heartbeat at once " +
		"lets the first check out again before the second has reported that it could not",
}

const unsteadyRuns = 3

// folders are what is run. A slot is the folder's own where the runner has one,
// because exceptions in the driver are named after it.
var folders = []folder{
	{"transactions", true, []part{
		legacy("transactions/legacy"),
		unified("transactions/unified", "run-command/tests/unified"),
	}},
	{"transactions-convenient-api", true, []part{legacy("convenient-transactions")}},
	{"retryable-writes", true, []part{
		legacy("retryable-writes/legacy"),
		unified("retryable-writes/unified", "retryable-writes/tests/unified"),
	}},
	{"retryable-reads", false, []part{
		legacy("retryable-reads/legacy"),
		unified("retryable-reads/unified", "retryable-reads/tests/unified"),
	}},
	{"crud", true, []part{
		unified("crud/unified", "crud/tests/unified"),
		legacy("crud/v1"),
	}},
	{"sessions", true, []part{unified("sessions", "sessions/tests")}},
	{"read-write-concern", true, []part{legacy("read-write-concern/operation")}},
	{"server-discovery-and-monitoring", false, []part{
		unified("server-discovery-and-monitoring/unified", "server-discovery-and-monitoring/tests/unified"),
		prose("^(TestSDAMProse|TestSDAMErrorHandling|TestServerHeartbeatStartedEvent)$"),
	}},
	{"prose", true, []part{
		prose("^(TestConnectionsSurvivePrimaryStepDown|TestRetryableReadsProse|TestRetryableWritesProse|TestSessionsProse|TestSessions|TestCausalConsistency_Supported)$"),
		prose("^(TestWriteErrorsWithLabels|TestWriteErrorsDetails|TestHintErrors|TestWriteConcernError|TestErrorsCodeNamePropagated)$"),
	}},
	{"change-streams", false, []part{
		unified("change-streams", "change-streams/tests/unified"),
		prose("^TestChangeStream_ReplicaSet$"),
	}},
	{"collection-management", false, []part{
		unified("collection-management", "collection-management/tests"),
	}},
}

// asked are the folders that the bar of 95 % counts.
func (f folder) asked() bool {
	return f.name != "change-streams" && f.name != "collection-management"
}
