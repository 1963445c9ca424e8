package main

import (
	"strings"
	"time"
)

// full is a source that makes full runs of a study, or reads those that are given.
func full(study, line string, times int) *source {
	// A study ends by its verdict, and any that is none of the user's or the program's faults counts.
	return &source{line: line + ` -q -o "$RUN"`, long: true, limit: 2 * time.Hour, exits: []int{0, 1, 3}, study: study, times: times}
}

// quick is a source whose time counts. A quick form ends inconclusive, by design.
func quick(line string, long bool) *source {
	return &source{line: line + ` --quick -q -o "$RUN"`, long: long, limit: 20 * time.Minute, exits: []int{3}}
}

func flipSection() section {
	decision := full("lockfree-flip", "assay run lockfree-flip", 2)
	replication := full("lockfree-flip-replication", "assay run lockfree-flip --protocol replication", 2)
	fast := quick("assay run lockfree-flip", false)
	planted := test("./studies/lockfreeflip", "^TestDefects", 20*time.Minute)
	return section{title: "The study lockfree-flip", doc: "lockfree-flip.md", bars: []bar{
		{id: "flip.decision.time", about: "the protocol decision", want: atMost(15), unit: "min", by: decision, take: ofRun(minutes)},
		{id: "flip.decision.same", about: "different outcomes of two runs of it", want: exactly(1), unit: "outcomes", by: decision, take: outcomes(), runs: 2},
		{id: "flip.replication.time", about: "the protocol replication", want: atMost(15), unit: "min", by: replication, take: ofRun(minutes)},
		{id: "flip.replication.same", about: "different outcomes of two runs of it", want: exactly(1), unit: "outcomes", by: replication, take: outcomes(), runs: 2},
		{id: "flip.parity", about: "syncs of the log per acknowledged write where each write has its own, both arms, all cells", want: exactly(1), by: replication, take: take{run: syncsPerWrite}},
		{id: "flip.quick.time", about: "the quick form", want: atMost(30), unit: "s", by: fast, take: seconds()},
		{id: "flip.planted", about: "planted defects that end in ABORT or no-go", want: atLeast(5), unit: "tests", by: planted, take: passes(`^TestDefects\w+/`)},
	}}
}

func syncsPerWrite(f *finished) (all []float64, err error) {
	for _, c := range f.results.Cells {
		for _, arm := range []string{"control", "treatment"} {
			a, err := f.arm(c.Name, "syncs_per_write", arm)
			if err != nil {
				return nil, err
			}
			all = append(all, float64(a.Min), float64(a.Max))
		}
	}
	return all, nil
}

func screeningSection() section {
	budgets := test("./screening", "NoFoldShapeWritesStatistics|TheDetectorsDetect|BudgetChargedRetry|BudgetRounds", 20*time.Minute)
	commands := func(id, about string, most float64, name string) bar {
		return bar{id: "screening." + id, about: about, want: atMost(most), unit: "commands", by: budgets, take: figure("commands." + name)}
	}
	return section{title: "screening, the store: commands of a save", doc: "screening.md", bars: []bar{
		commands("source-only", "source-only", 2, "plain.source-only"),
		commands("transactional", "transactional, with its commit", 21, "plain.transactional"),
		commands("fold", "fold, first attempt", 4, "plain.fold"),
		commands("fold.guarded", "fold, guarded by the study's capacity, first attempt", 4, "guarded.fold"),
		commands("retry", "fold, charged retry, one namespace", 6, "fold.retry"),
		commands("retry.two", "fold, charged retry, two namespaces", 8, "fold-two-namespaces.retry"),
		{id: "screening.rounds", about: "fold, first attempt and charged retry take two sequential rounds each: tests that hold commands back until all of a round are sent", want: atLeast(1), unit: "tests", by: budgets, take: passes(`^TestBudgetRounds$`)},
		commands("eligibility.source-only", "source-only under the eligibility policy", 7, "eligibility.source-only"),
		commands("eligibility.fold", "fold under it", 9, "eligibility.fold"),
		commands("session", "annotation session, untracked, fold", 4, "session.fold"),
		commands("session.tracked", "annotation session, tracked, fold, with its commit", 6, "session-tracked.fold"),
		commands("session.deleted", "annotation session deleted, fold", 5, "session-deleted.fold"),
		commands("release", "reservation released, fold", 5, "reservation-released.fold"),
		commands("claim", "reservation claimed, fold", 3, "claim.fold"),
		commands("claim.alone", "the same where the caller does not bring the project", 4, "claim-without-the-project.fold"),
	}}
}

// Cells of the study screening-write.
func swCell(target, reviewers, regime string) string {
	return "target=" + target + ",reviewers=" + reviewers + ",eligibility=off,regime=" + regime
}

func screeningWriteSection() section {
	study := full("screening-write", "assay run screening-write", 2)
	fast := quick("assay run screening-write", false)
	planted := test("./studies/screeningwrite", "PlantedDefectsShutTheGate", 20*time.Minute)
	alone := []string{swCell("same_study", "1", "free"), swCell("different_studies", "1", "free")}
	overSource := func(arm string) take {
		return take{run: func(f *finished) (all []float64, err error) {
			for _, cell := range alone {
				a, err := f.pooled(cell, "p95", arm)
				if err != nil {
					return nil, err
				}
				ref, err := f.pooled(cell, "p95", "source_only")
				if err != nil {
					return nil, err
				}
				all = append(all, a/ref)
			}
			return all, nil
		}}
	}
	overSync := take{run: func(f *finished) (all []float64, err error) {
		for _, cell := range alone {
			p95, err := f.pooled(cell, "p95", "source_only")
			if err != nil {
				return nil, err
			}
			sync, err := f.pooled(cell, "sync_p50", "source_only")
			if err != nil {
				return nil, err
			}
			all = append(all, p95/sync)
		}
		return all, nil
	}}
	worker := ofRun(func(f *finished) (float64, error) {
		cell := swCell("different_studies", "10", "backlog")
		drain, err := f.arm(cell, "drain_rate", "fold")
		if err != nil {
			return 0, err
		}
		save, err := f.arm(cell, "save_rate", "fold")
		if err != nil {
			return 0, err
		}
		return float64(drain.Mean) / float64(save.Mean), nil
	})
	latency := func(rule string) bool { return strings.HasPrefix(rule, "fold_latency") }
	statistics := func(rule string) bool { return strings.HasPrefix(rule, "no_statistics") }
	return section{title: "The study screening-write", doc: "screening-write.md", bars: []bar{
		{id: "sw.gate.statistics", about: "gate (b): cells in which statistics caused a conflict or an exhausted submission", want: exactly(0), by: study, runs: 2,
			take: ofRun(func(f *finished) (float64, error) { return f.broken(statistics) })},
		{id: "sw.gate.latency", about: "gate (b): latency-gated cells that fail, in two runs one after the other", want: exactly(0), by: study, runs: 2,
			take: ofRun(func(f *finished) (float64, error) { return f.broken(latency) })},
		{id: "sw.source-only", about: "source-only, one reviewer, p95 of a submission to the run's single-sync p50", want: atMost(20), by: study, take: overSync},
		{id: "sw.fold", about: "fold, one reviewer, p95 to source-only's", want: atMost(1.3), by: study, take: overSource("fold")},
		{id: "sw.transactional", about: "transactional, one reviewer, p95 to source-only's", want: atMost(5), by: study, take: overSource("transactional")},
		{id: "sw.worker", about: "entries that the worker drains per second, to the saves of ten reviewers", want: atLeast(2), by: study, take: worker},
		{id: "sw.time", about: "the full matrix", want: atMost(15), unit: "min", by: study, take: ofRun(minutes)},
		{id: "sw.quick.time", about: "the quick form", want: atMost(60), unit: "s", by: fast, take: seconds()},
		{id: "sw.planted", about: "planted defects that end in ABORT by the check that is meant for them", want: atLeast(5), unit: "tests", by: planted, take: passes(`^TestPlantedDefectsShutTheGate/`)},
	}}
}

func authoritySection() section {
	study := full("authority-reads", "assay run authority-reads", 1)
	fast := quick("assay run authority-reads", true)
	planted := test("./studies/authorityreads", "PlantedDefectsShutTheGate", 20*time.Minute)
	middleware := &source{line: "go test ./authority -run '^$' -bench '^BenchmarkRequire$' -count 5", limit: 5 * time.Minute}
	scenario := func(name string) string { return "scenario=" + name }
	faults := []string{scenario("stepdown"), scenario("kill"), scenario("kill-fast"), scenario("partition"), scenario("nomajority")}
	sum := func(cells []string, metric string, arms ...string) take {
		return ofRun(func(f *finished) (float64, error) { return f.sum(cells, metric, arms...) })
	}
	everywhere := func(metric string) take {
		return ofRun(func(f *finished) (float64, error) {
			var cells []string
			for _, c := range f.results.Cells {
				if c.Name != scenario("dual-primary") {
					cells = append(cells, c.Name)
				}
			}
			return f.sum(cells, metric, "linearizable", "shared")
		})
	}
	ratio := func(cell, metric, arm string) take {
		return ofRun(func(f *finished) (float64, error) { return f.ratio(scenario(cell), metric, arm) })
	}
	unpassed := func(checks ...string) take {
		return ofRun(func(f *finished) (float64, error) { return f.unpassed(checks...) })
	}
	first := func(cell string) take {
		return take{run: func(f *finished) (all []float64, err error) {
			a, err := f.arm(scenario(cell), "first_success_s", "linearizable")
			if err != nil {
				return nil, err
			}
			return []float64{float64(a.Max)}, nil
		}}
	}
	return section{title: "authority, and the study authority-reads", doc: "authority-reads.md", bars: []bar{
		{id: "authority.stale", about: "checks for stale, unordered or vouched-for revoked reads that did not pass, all runs", want: exactly(0), by: study, take: unpassed("no_stale_allow", "linearizable_history", "dual_primary_refused")},
		{id: "authority.reads", about: "linearizable reads across the fault runs that an acknowledged change bound, shared ones left out", want: atLeast(500_000), unit: "reads", by: study, take: sum(faults, "bound_reads", "linearizable")},
		{id: "authority.hangs", about: "linearizable and shared reads that hung", want: exactly(0), unit: "reads", by: study, take: everywhere("hangs")},
		{id: "authority.late", about: "of them, over their deadline", want: exactly(0), unit: "reads", by: study, take: everywhere("over_deadline")},
		{id: "authority.dual", about: "trials with two primaries that were conclusive and in which the old one was refused", want: atLeast(3), by: study,
			take: ofRun(func(f *finished) (float64, error) {
				if n, err := f.unpassed("dual_primary_refused"); err != nil || n > 0 {
					return 0, err
				}
				return f.trials(scenario("dual-primary"), "linearizable")
			})},
		{id: "authority.median", about: "linearizable to majority reads at 3 × 32, median", want: atMost(2), by: study, take: ratio("latency-3x32", "p50", "linearizable")},
		{id: "authority.throughput", about: "the same, throughput", want: atLeast(0.67), by: study, take: ratio("latency-3x32", "throughput", "linearizable")},
		{id: "authority.shared", about: "shared reads of hot people to majority reads, throughput", want: atLeast(1), by: study, take: ratio("hot-3x32", "throughput", "shared")},
		{id: "authority.stepdown", about: "linearizable reads that a step-down refuses", want: exactly(0), unit: "reads", by: study, take: sum([]string{scenario("stepdown")}, "failed", "linearizable")},
		{id: "authority.kill", about: "first success after a kill of the primary, elections as MongoDB has them", want: atMost(12.1), unit: "s", by: study, take: first("kill")},
		{id: "authority.kill-fast", about: "the same with fast elections", want: atMost(1), unit: "s", by: study, take: first("kill-fast")},
		{id: "authority.middleware", about: "what the decision adds to a read", want: atMost(20_000), unit: "ns/op", by: middleware, take: benchmark("BenchmarkRequire", "ns/op")},
		{id: "authority.quick.time", about: "the quick form; about three minutes, taken as 210 s", want: atMost(210), unit: "s", by: fast, take: seconds()},
		{id: "authority.planted", about: "planted defects that end in ABORT by the check that is meant for them", want: atLeast(5), unit: "tests", by: planted, take: passes(`^TestPlantedDefectsShutTheGate/`)},
	}}
}

func productSection() section {
	readme := &source{line: `awk 'END { print "figure: readme.lines", NR, "lines" }' README.md`, limit: time.Minute}
	bare := &source{line: "scripts/bare-machine", long: true, limit: 3 * time.Hour, needs: []string{"debootstrap"}, exits: []int{0, 1}}
	return section{title: "One product", bars: []bar{
		{id: "product.readme", about: "lines of the README", want: atMost(199), unit: "lines", by: readme, take: figure("readme.lines")},
		{id: "product.bare", about: "of the README's two commands, by an ordinary user and by root, those that pass in a root with Debian's base, Go and what the README names", want: atLeast(4), unit: "commands", by: bare, take: figure("bare-machine.passed")},
	}}
}
