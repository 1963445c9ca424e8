package main

import "time"

// sections is the list of bars. A new bar is an entry here; a command that measures prints
// its figure as the package comment says.
func sections() []section {
	return []section{labSection(), replsetSection(), artrieSection(), flipSection(), screeningSection(), screeningWriteSection(), authoritySection(), productSection()}
}

// test is a source that runs tests of one package, long the same with ASSAY_LONG.
func test(pkg, run string, limit time.Duration) *source {
	return &source{line: "go test " + pkg + " -count 1 -v -run '" + run + "'", limit: limit}
}

func longTest(pkg, run string, limit time.Duration) *source {
	s := test(pkg, run, limit)
	s.line, s.long = "ASSAY_LONG=1 "+s.line+" -timeout 0", true
	return s
}

func labSection() section {
	harness := &source{line: "go run ./bench/lab -only harness", limit: 10 * time.Minute, needs: []string{"hyperfine"}}
	analysis := &source{line: "go run ./bench/lab -only analysis", limit: 10 * time.Minute}
	verify := &source{line: "go run ./bench/lab -only verify", limit: 10 * time.Minute}
	stats := test("./lab/stats", "DataSets|FalsePositive|Power", 10*time.Minute)
	kill := longTest("./lab/flow", "KillsCostNothing", time.Hour)
	demo := &source{line: `assay run examples/compressors/compressors.yaml -q -o "$RUN"`, limit: 5 * time.Minute}
	return section{title: "The lab", doc: "lab.md", bars: []bar{
		{id: "lab.harness.no-shell", about: "time per run of `true` without a shell, to hyperfine's", want: atMost(1), unit: "×", by: harness, take: figure("harness.no-shell")},
		{id: "lab.harness.shell", about: "the same with a shell", want: atMost(1), unit: "×", by: harness, take: figure("harness.shell")},
		{id: "lab.analysis.time", about: "analysing 16 cells × 3 arms × 100 rounds with 1,000,000 samples", want: atMost(2), unit: "s", by: analysis, take: figure("analysis.time")},
		{id: "lab.analysis.memory", about: "peak memory of it", want: atMost(300), unit: "MiB", by: analysis, take: figure("analysis.memory")},
		{id: "lab.verify", about: "bytes of a run folder that are checked per second", want: atLeast(200), unit: "MB/s", by: verify, take: figure("verify.rate")},
		{id: "lab.stats.data-sets", about: "data sets on which the statistics agree with R and SciPy, to 1e-9 and p to 1e-6", want: atLeast(40), unit: "sets", by: stats, take: figure("stats.data-sets")},
		{id: "lab.stats.false-positives", about: "share of experiments without effect that the default primary rejects at 0.05, under drift, noise and slot bias", want: between(0.03, 0.07), by: stats, take: figure("stats.false-positives")},
		{id: "lab.stats.power-gain", about: "power of the default primary under shared noise, to Welch's", want: atLeast(1), unit: "×", by: stats, take: figure("stats.power-gain")},
		{id: "lab.kill", about: "kills of a run at random moments whose resumed results are those of an undisturbed one", want: atLeast(200), unit: "kills", by: kill, take: figure("flow.kills")},
		{id: "lab.demo", about: "the shipped experiment, to verdict and page", want: atMost(60), unit: "s", by: demo, take: seconds()},
	}}
}

func replsetSection() section {
	conformance := &source{line: "scripts/driver-conformance", long: true, limit: time.Hour, exits: []int{0, 1}}
	short := &source{line: "scripts/driver-conformance -short", limit: 20 * time.Minute}
	cas := longTest("./replset", "NoVersionIsWonTwice", time.Hour)
	histories := longTest("./replset", "^TestHistories$", time.Hour)
	inCI := test("./replset", "^TestHistories$", 20*time.Minute)
	planted := test("./replset", "PlantedDefectsAreFound", 20*time.Minute)
	kills := longTest("./replset", "NothingIsLostBySIGKILL", time.Hour)
	power := longTest("./replset", "NothingIsLostByPowerFailures", 2*time.Hour)
	complaints := test("./replset", "^TestComplaint", 20*time.Minute)
	bench := &source{line: "cd bench/replset && go run .", limit: 20 * time.Minute, needs: []string{"/usr/lib/postgresql/15/bin/initdb"}}
	return section{title: "replset, the embedded replica set", doc: "replset.md", bars: []bar{
		{id: "replset.driver", about: "tests of the official driver that pass, of those that run", want: atLeast(95), unit: "%", by: conformance, take: figure("conformance.share")},
		{id: "replset.driver.new-failures", about: "of them, failures that are not in the list of known ones, and listed ones that pass", want: exactly(0), unit: "tests", by: conformance, take: figure("conformance.unexpected")},
		{id: "replset.driver.ci", about: "the part of them that runs in CI", want: atMost(300), unit: "s", by: short, take: seconds()},
		{id: "replset.cas", about: "versions won twice by compare-and-swap: 8 workers, all presets, also through step-downs and kills", want: exactly(0), by: cas, take: figure("cas.double-wins")},
		{id: "replset.histories", about: "random histories through faults that are linearizable per document and snapshot isolated per transaction, and lose nothing", want: atLeast(50), unit: "histories", by: histories, take: figure("histories.sound")},
		{id: "replset.histories.ci", about: "the same in CI", want: atLeast(5), unit: "histories", by: inCI, take: figure("histories.sound")},
		{id: "replset.planted", about: "planted defects that the histories find, one per guarantee", want: atLeast(4), unit: "tests", by: planted, take: passes(`^TestPlantedDefectsAreFound/`)},
		{id: "replset.kills", about: "SIGKILLs of members and of the whole set under load with nothing acknowledged lost, indexes and documents agreeing", want: atLeast(100), unit: "kills", by: kills, take: figure("crash.kills")},
		{id: "replset.power", about: "power failures that drop what was not synced, the same", want: atLeast(100), unit: "kills", by: power, take: figure("crash.kills")},
		{id: "replset.pairs.1", about: "find and findOneAndReplace, 1 worker, three members: pairs/s to FerretDB's one node on PostgreSQL", want: atLeast(2), unit: "×", by: bench, take: figure("pairs.1.rate")},
		{id: "replset.pairs.1.p95", about: "the same, p95", want: atMost(0.6), unit: "×", by: bench, take: figure("pairs.1.p95")},
		{id: "replset.pairs.8", about: "the same with 8 workers, pairs/s", want: atLeast(3), unit: "×", by: bench, take: figure("pairs.8.rate")},
		{id: "replset.pairs.8.p95", about: "the same, p95", want: atMost(0.6), unit: "×", by: bench, take: figure("pairs.8.p95")},
		{id: "replset.growth", about: "pairs/s with 64 workers, to those with 8: cost that grows no worse than linearly", want: atLeast(1), unit: "×", by: bench, take: figure("pairs.growth")},
		{id: "replset.start", about: "start of three members to the first write done", want: atMost(300), unit: "ms", by: bench, take: figure("life.start")},
		{id: "replset.clean", about: "reset between tests", want: atMost(5), unit: "ms", by: bench, take: figure("life.clean")},
		{id: "replset.close", about: "close", want: atMost(100), unit: "ms", by: bench, take: figure("life.close")},
		{id: "replset.memory", about: "process of an idle set, on disk", want: atMost(60), unit: "MiB", by: bench, take: figure("life.memory")},
		{id: "replset.complaints", about: "complaints about its peers that a test shows cannot be made of it", want: atLeast(22), unit: "tests", by: complaints, take: passes(`^TestComplaint\d+[^/]*$`)},
	}}
}

func artrieSection() section {
	bench := func(sections string) *source {
		return &source{line: "cd bench/trie && go run . -only " + sections, long: true, limit: time.Hour}
	}
	peers, empty, large, spin := bench("peers"), bench("empty"), bench("large"), bench("spin")
	memory, checkpoint, recovery, eviction := bench("memory"), bench("checkpoint"), bench("recovery"), bench("eviction")
	kill := longTest("./artrie", "^TestKill$", time.Hour)
	models := &source{line: "go run ./models", long: true, limit: time.Hour, needs: []string{"spin", "gcc"}, exits: []int{0, 1}}
	return section{title: "artrie, the durable trie", doc: "artrie.md", bars: []bar{
		{id: "artrie.peers", about: "durable writes/s of 8 writers, syncs shared, to the best of pebble, goleveldb, bbolt and badger", want: atLeast(2), by: peers, take: figure("peers.best")},
		{id: "artrie.peers.limit", about: "the same, to 8 / S", want: atLeast(0.75), by: peers, take: figure("peers.limit")},
		{id: "artrie.peers.p50", about: "the same, p50 in S", want: atMost(1.2), by: peers, take: figure("peers.p50")},
		{id: "artrie.peers.p999", about: "the same, p99.9 in S", want: atMost(20), by: peers, take: figure("peers.p999")},
		{id: "artrie.empty", about: "overlay, syncs shared, to owned with a sync per write; empty start, 4 paced readers, a checkpoint every 20 ms: writes/s", want: atLeast(5.5), by: empty, take: figure("empty.immediate")},
		{id: "artrie.empty.p50", about: "the same, p50", want: atMost(0.2), by: empty, take: figure("empty.immediate-p50")},
		{id: "artrie.empty.p999", about: "the same, p99.9", want: atMost(0.4), by: empty, take: figure("empty.immediate-p999")},
		{id: "artrie.large", about: "the same at 1,000,000 keys, writes/s", want: atLeast(50), by: large, take: figure("large.immediate")},
		{id: "artrie.large.p50", about: "the same, p50", want: atMost(0.2), by: large, take: figure("large.immediate-p50")},
		{id: "artrie.large.p999", about: "the same, p99.9", want: atMost(0.05), by: large, take: figure("large.immediate-p999")},
		{id: "artrie.large.group", about: "at 1,000,000 keys, to owned with syncs shared, writes/s", want: atLeast(10), by: large, take: figure("large.group")},
		{id: "artrie.large.group.p999", about: "the same, p99.9", want: atMost(0.05), by: large, take: figure("large.group-p999")},
		{id: "artrie.spin.group", about: "beside four spinning readers on two processors, syncs shared: writes/s to owned", want: atLeast(1), by: spin, take: figure("spin.group")},
		{id: "artrie.spin.immediate", about: "the same with a sync per write", want: atLeast(1), by: spin, take: figure("spin.immediate")},
		{id: "artrie.memory.bytes", about: "bytes per key, 1,000,000 keys", want: atMost(70), by: memory, take: figure("memory.bytes")},
		{id: "artrie.memory.hit", about: "a hit, to a map under an RWMutex", want: atMost(2.5), by: memory, take: figure("memory.hit")},
		{id: "artrie.memory.hit.iradix", about: "the same, to go-immutable-radix", want: atMost(1), by: memory, take: figure("memory.hit-iradix")},
		{id: "artrie.memory.hit.btree", about: "the same, to tidwall/btree", want: atMost(1), by: memory, take: figure("memory.hit-btree")},
		{id: "artrie.memory.prefix", about: "a prefix scan, to tidwall/btree", want: atMost(1), by: memory, take: figure("memory.prefix")},
		{id: "artrie.checkpoint.bytes", about: "checkpoint after 1,000 changes in 1,000,000 keys, % of the bytes of a full one", want: atMost(2), by: checkpoint, take: figure("checkpoint.bytes")},
		{id: "artrie.checkpoint.time", about: "the same, % of its time", want: atMost(2), by: checkpoint, take: figure("checkpoint.time")},
		{id: "artrie.replay", about: "records replayed per second", want: atLeast(1e6), by: recovery, take: figure("recovery.replay")},
		{id: "artrie.open", about: "opening 1,000,000 keys from a checkpoint, ms to the first answer", want: atMost(300), by: recovery, take: figure("recovery.open")},
		{id: "artrie.eviction.memory", about: "a third of the data in memory, uniform reads: peak memory, to all of it", want: atMost(0.45), by: eviction, take: figure("eviction.memory")},
		{id: "artrie.eviction.writes", about: "the same, durable writes/s", want: atLeast(0.7), by: eviction, take: figure("eviction.writes")},
		{id: "artrie.eviction.budget", about: "highest size of the nodes in memory, to the budget", want: atMost(1.05), by: eviction, take: figure("eviction.budget")},
		{id: "artrie.kills", about: "kills of a writing process after each of which exactly what was acknowledged is there, and at most the writes in flight", want: atLeast(200), unit: "kills", by: kill, take: figure("kill.kills")},
		{id: "artrie.models", about: "explorations of models (the store of screening has some too) that do not end as they must: a model has to hold, its unsafe twin to break", want: exactly(0), unit: "explorations", by: models, take: figure("models.failed")},
	}}
}
