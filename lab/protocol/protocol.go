// Package protocol says what is fixed before any data: it parses a protocol
// file, finds every fault in it with line and column, and freezes it into a
// lock whose digest the ledger starts from.
//
// It must never know how a plan is run, measured or judged. It may use
// statistics only to say that a plan cannot work.
package protocol

import (
	"slices"
	"time"
)

// SchemaVersion is the version of the protocol file this package reads.
const SchemaVersion = 1

// Protocol is an experiment as its author wrote it, with defaults filled in.
// The struct tags drive the parser, the JSON Schema and the reference in the
// documentation, so a key exists in all three or in none.
type Protocol struct {
	Schema      int        `json:"assay" doc:"Version of this file format; 1." required:"true"`
	Name        string     `json:"name" doc:"Short name of the experiment: letters, digits, dash, dot, underscore." required:"true"`
	Question    string     `json:"question" doc:"The decision this experiment is for, as one question." required:"true"`
	Hypotheses  []string   `json:"hypotheses,omitempty" doc:"What is claimed and its opposite, one line each."`
	Expectation string     `json:"expectation,omitempty" doc:"What the author expects and why, written before the run, so that hindsight shows."`
	Asymmetries []string   `json:"asymmetries,omitempty" doc:"Differences between the arms that are inherent and not the thing compared; printed in the report."`
	Inputs      []string   `json:"inputs,omitempty" doc:"Files that the arms read. Hashed by freeze; a run refuses other content."`
	Arms        []Arm      `json:"arms" doc:"The things compared. The first is the reference." required:"true"`
	Settings    []Setting  `json:"settings,omitempty" doc:"What the arms and checks are told besides; run sets one with a flag of its name."`
	Factors     []Factor   `json:"factors,omitempty" doc:"What is varied. Every combination of levels is a cell."`
	Exclude     []Selector `json:"exclude,omitempty" doc:"Cells left out: a cell that matches any of these is not run."`
	Overrides   []Override `json:"overrides,omitempty" doc:"Other rounds, warm-up, time-out or arms for some cells."`
	Design      Design     `json:"design" doc:"Rounds, warm-up, seed and isolation." required:"true"`
	Metrics     []Metric   `json:"metrics" doc:"What is read from each trial." required:"true"`
	Checks      []Check    `json:"checks,omitempty" doc:"Correctness: every one must pass before any effect is computed."`
	Primary     *Primary   `json:"primary" doc:"The one comparison that the decision is about." required:"true"`
	Vetoes      []Rule     `json:"vetoes,omitempty" doc:"Secondary comparisons that can only block."`
	Gates       []Rule     `json:"gates,omitempty" doc:"Rules on one metric in each cell they name."`
	Decision    Decision   `json:"decision" doc:"The ordered outcomes and their classes." required:"true"`
	Host        []Limit    `json:"host,omitempty" doc:"Limits on the state of the machine."`
}

// Arm is one of the things compared. Exactly one of Command, Shell and Func
// says what a trial executes.
type Arm struct {
	Name    string            `json:"name" doc:"Letters, digits, dot, dash, underscore." required:"true"`
	Command []string          `json:"command,omitempty" doc:"Program and arguments, run without a shell. ${NAME} is replaced by an ASSAY_ variable, a factor's variable or an env entry of this arm."`
	Shell   string            `json:"shell,omitempty" doc:"A line for /bin/sh -c."`
	Func    string            `json:"func,omitempty" doc:"Name of a Go function registered by the study's program."`
	Env     map[string]string `json:"env,omitempty" doc:"Environment variables added for this arm."`
	Dir     string            `json:"dir,omitempty" doc:"Working directory, relative to the protocol file (to the worktree, where rev is given)."`
	Rev     string            `json:"rev,omitempty" doc:"Git revision. The arm runs in a worktree of its own at that commit."`
	Setup   string            `json:"setup,omitempty" doc:"Shell line run once for the arm before its first trial; builds belong here."`
	Prepare string            `json:"prepare,omitempty" doc:"Shell line run before each trial, untimed."`
	Cleanup string            `json:"cleanup,omitempty" doc:"Shell line run once after the arm's last trial, also after a failure."`
	Version string            `json:"version,omitempty" doc:"Shell line whose output is the arm's version receipt, recorded by freeze."`
	Timeout Duration          `json:"timeout,omitempty" doc:"Longest time of one trial; then its whole process group is killed. Default 10m."`
	OKExit  []int             `json:"ok_exit,omitempty" doc:"Exit statuses that count as success; default [0]."`
	Class   string            `json:"class,omitempty" enum:"compared,reported" doc:"compared (default) or reported: measured and shown, never part of primary, vetoes or gates unless they name it."`
}

// Setting is a value that arms and checks are told. It stands in the lock like
// all else, so that a run says what it was told.
type Setting struct {
	Name   string `json:"name" doc:"Lower-case letters, digits, underscore; becomes ASSAY_SETTING_<NAME> for the arms and the flag --name, with dashes, of run." required:"true"`
	Value  string `json:"value,omitempty" doc:"The value where run gives none. For off, the flag alone means on."`
	About  string `json:"about,omitempty" doc:"What it changes, for the help text."`
	Effect string `json:"effect,omitempty" enum:"plan,place" doc:"plan (default): another value makes the run exploratory. place: it says where or with what the plan is carried out, and the run still decides."`
}

// Factor is one thing varied; its levels multiply into cells.
type Factor struct {
	Name   string   `json:"name" doc:"Lower-case letters, digits, underscore; becomes ASSAY_FACTOR_<NAME> for the arms." required:"true"`
	Levels []Scalar `json:"levels" doc:"The values, in the order they are reported." required:"true"`
}

// Selector names cells by factor levels: a cell matches when each factor
// given has one of the levels given. The empty selector matches every cell.
type Selector map[string]Levels

// Levels is one level or a list of levels.
type Levels []Scalar

// Scalar is a level as it is written in the file: 1 and "1" are the same.
type Scalar string

// Override changes the design for the cells it selects. Zero fields keep the
// value of the design.
type Override struct {
	Cells   Selector `json:"cells" doc:"Which cells." required:"true"`
	Rounds  int      `json:"rounds,omitempty" doc:"Measured rounds in these cells."`
	Warmup  *int     `json:"warmup,omitempty" doc:"Warm-up rounds in these cells."`
	Timeout Duration `json:"timeout,omitempty" doc:"Time-out of one trial in these cells."`
	Arms    []string `json:"arms,omitempty" doc:"Which arms run in these cells; default all. Only an arm of class reported may be left out."`
	Class   string   `json:"class,omitempty" enum:"gated,stress" doc:"stress: these cells are measured and reported, never judged."`
}

// Design is how often and in what order things run. The stop rule is always
// fixed: exactly Rounds rounds, no peeking, no extra ones.
type Design struct {
	Rounds    int    `json:"rounds" doc:"Measured rounds per cell; fixed before data." required:"true"`
	Warmup    int    `json:"warmup" doc:"Rounds run and recorded before them, never analysed."`
	Seed      uint64 `json:"seed" doc:"Seed of the order of arms, of the trials' own seeds and of every resampling."`
	Isolation string `json:"isolation,omitempty" enum:"process,shared" doc:"For Go arms. process (default): each trial is a process of its own. shared: all trials run in the harness, for what must stay warm."`
	Stop      string `json:"stop,omitempty" enum:"fixed" doc:"The stop rule. Only fixed exists: no early stop and no added rounds."`
	Scratch   string `json:"scratch,omitempty" enum:"disk,any" doc:"disk: scratch must be on a real file system, tmpfs is refused. any (default)."`
	ScratchGB int    `json:"scratch_gib,omitempty" doc:"Ceiling for the scratch folder in GiB, checked before and after each round; 0 is no ceiling."`
}

// Metric is one number per trial.
type Metric struct {
	Name      string   `json:"name" doc:"Lower-case letters, digits, underscore." required:"true"`
	Unit      string   `json:"unit,omitempty" doc:"Unit as printed. Times: s (default) ms us ns. Peak memory: MiB (default) B KiB GiB. For gobench the unit of the line, such as ns/op."`
	Better    string   `json:"better" enum:"lower,higher" doc:"Which direction is an improvement." required:"true"`
	Source    string   `json:"source" enum:"wall,user,system,cpu,peak_memory,switches,exit,json,gobench,samples" doc:"Where the number comes from." required:"true"`
	Key       string   `json:"key,omitempty" doc:"Key of the JSON line, name of the samples, or name of the Go benchmark; default: the metric's name."`
	Quantile  *float64 `json:"quantile,omitempty" doc:"For samples: which quantile of a trial's samples is its value, between 0 and 1."`
	Count     bool     `json:"count,omitempty" doc:"An exact count of work, not a timing: printed first, compared exactly."`
	Summarise string   `json:"summarise,omitempty" enum:"mean,median" doc:"How rounds are summarised in tables; default mean. Tests are not affected."`
}

// Check is one correctness requirement. Exactly one of Command, Shell, Func
// and Reported says who judges.
type Check struct {
	Name       string   `json:"name" doc:"Lower-case letters, digits, underscore." required:"true"`
	Scope      string   `json:"scope" enum:"trial,round,cell,run" doc:"After each trial, each round, each cell, or once at the end." required:"true"`
	Command    []string `json:"command,omitempty" doc:"Judge by a program. Exit 0 passes, 1 fails, anything else is unknown."`
	Shell      string   `json:"shell,omitempty" doc:"Judge by a line for /bin/sh -c; the same exit rule."`
	Func       string   `json:"func,omitempty" doc:"Judge by a Go function of the study."`
	Reported   bool     `json:"reported,omitempty" doc:"The arm itself reports the result in a JSON line {\"check\": name, \"status\": \"pass\", \"operations\": n}."`
	Arms       []string `json:"arms,omitempty" doc:"Only for these arms (scope trial); default all."`
	Cells      Selector `json:"cells,omitempty" doc:"Only in these cells; default all."`
	Operations int      `json:"operations,omitempty" doc:"Least number of operations the check must have looked at; fewer make it unknown. Default 1."`
	Kinds      []string `json:"kinds,omitempty" doc:"Kinds of operation of which at least one must have succeeded."`
	Faults     []string `json:"faults,omitempty" doc:"Faults that must have fired."`
	Timeout    Duration `json:"timeout,omitempty" doc:"Longest time of one judgement; then it is unknown. Default 10m."`
}

// Primary is the comparison that the decision is about. Where it selects
// several cells they form one family, corrected by Holm, and the decision
// sees the weakest of them.
type Primary struct {
	Metric    string   `json:"metric" doc:"Name of a metric." required:"true"`
	Treatment string   `json:"treatment,omitempty" doc:"The arm compared with the reference; default the second."`
	Cells     Selector `json:"cells,omitempty" doc:"Which cells; default all that are not stress."`
	Test      string   `json:"test,omitempty" enum:"paired,welch,mann-whitney" doc:"paired (default): t with the round as block and the places within a round taken out. welch, mann-whitney: arms as independent samples."`
	Alpha     float64  `json:"alpha,omitempty" doc:"Two-sided family-wise level; default 0.05."`
	Floor     Floor    `json:"floor,omitempty" doc:"Smallest effect that matters; exactly one key."`
}

// Floor is the smallest effect that matters, on one scale. The zero Floor
// asks for nothing beyond significance.
type Floor struct {
	D      float64 `json:"d,omitempty" doc:"Cohen's d, pooled over the arms' rounds."`
	Dz     float64 `json:"dz,omitempty" doc:"Mean of the paired differences over their standard deviation."`
	Change float64 `json:"change,omitempty" doc:"Relative change of the mean: 0.05 is five per cent."`
}

// Rule is a gate or a veto: a condition on one metric, evaluated in each cell
// it selects.
type Rule struct {
	Name      string   `json:"name" doc:"Lower-case letters, digits, underscore." required:"true"`
	Metric    string   `json:"metric" doc:"Name of a metric." required:"true"`
	Arm       string   `json:"arm,omitempty" doc:"The arm compared with the reference; default the primary's."`
	Cells     Selector `json:"cells,omitempty" doc:"Which cells; default all."`
	Statistic string   `json:"statistic,omitempty" enum:"mean,median,max,sum,pooled" doc:"What ref and treat stand for: mean (default), median, max or sum over rounds, or pooled: the quantile of all samples of all rounds."`
	Require   string   `json:"require" doc:"Condition that must hold, over ref treat diff ratio change and their _low _high, p d dz n better worse." required:"true"`
	Class     string   `json:"class,omitempty" enum:"gated,stress" doc:"gated (default) or stress: reported, never judged."`
	Because   string   `json:"because,omitempty" doc:"Why this limit."`
}

// Decision is the rule that turns results into one outcome: a preset with its
// parameters, or a list of outcomes. The last outcome is the default and may
// not be go.
type Decision struct {
	Preset   string    `json:"preset,omitempty" enum:"four-branch" doc:"A shipped rule; four-branch is PROCEED, PROCEED-WITH-CAVEAT, NO-BENEFIT, REGRESSION."`
	Caveat   string    `json:"caveat,omitempty" doc:"For four-branch: condition under which a tie is still worth having, for instance effect.stall.ratio <= 0.8."`
	Outcomes []Outcome `json:"outcomes,omitempty" doc:"First whose condition holds is the outcome."`
}

// Outcome is one branch of the decision.
type Outcome struct {
	Name  string `json:"name" doc:"What the branch is called in the verdict." required:"true"`
	Class string `json:"class" enum:"go,no-go,inconclusive,invalid" doc:"What it means." required:"true"`
	When  string `json:"when,omitempty" doc:"Condition over primary, veto, gate, effect and check; the last outcome has none."`
	Say   string `json:"say,omitempty" doc:"One sentence for the team."`
}

// Limit is a bound on a host probe and what follows when it is broken.
type Limit struct {
	Probe       string   `json:"probe" doc:"Name of a probe." required:"true"`
	Max         *float64 `json:"max,omitempty" doc:"Highest value allowed."`
	Min         *float64 `json:"min,omitempty" doc:"Lowest value allowed."`
	Action      string   `json:"action" enum:"block,warn,provisional" doc:"block: the run is invalid. provisional: the verdict is inconclusive. warn: said in the report." required:"true"`
	Unavailable string   `json:"unavailable,omitempty" enum:"block,warn,provisional,allow" doc:"What follows where the machine has no such probe; default: the action."`
}

// Duration is a time span written as in Go: 30s, 5m. Zero means the default.
type Duration time.Duration

// Arm, source and class words that code compares with.
const (
	EffectPlan  = "plan"
	EffectPlace = "place"

	IsolationProcess = "process"
	IsolationShared  = "shared"

	SourceWall       = "wall"
	SourceUser       = "user"
	SourceSystem     = "system"
	SourceCPU        = "cpu"
	SourcePeakMemory = "peak_memory"
	SourceSwitches   = "switches"
	SourceExit       = "exit"
	SourceJSON       = "json"
	SourceGoBench    = "gobench"
	SourceSamples    = "samples"

	ScopeTrial = "trial"
	ScopeRound = "round"
	ScopeCell  = "cell"
	ScopeRun   = "run"

	TestPaired      = "paired"
	TestWelch       = "welch"
	TestMannWhitney = "mann-whitney"

	StatMean   = "mean"
	StatMedian = "median"
	StatMax    = "max"
	StatSum    = "sum"
	StatPooled = "pooled"

	ClassGated    = "gated"
	ClassStress   = "stress"
	ClassCompared = "compared"
	ClassReported = "reported"

	ActionBlock       = "block"
	ActionWarn        = "warn"
	ActionProvisional = "provisional"
	ActionAllow       = "allow"
)

// CompletedCheck is the check that every run has without declaring it: that
// each trial that should have run did, and ended well. An arm that fails is
// never a figure.
const CompletedCheck = "completed"

// DefaultTimeout bounds a trial or a judgement whose protocol names no limit.
const DefaultTimeout = 10 * time.Minute

// Reference is the arm that all others are compared with.
func (p *Protocol) Reference() string { return p.Arms[0].Name }

// Arm returns the arm of that name, nil if there is none.
func (p *Protocol) Arm(name string) *Arm {
	return find(p.Arms, func(a *Arm) bool { return a.Name == name })
}

// Setting returns the setting of that name, nil if there is none.
func (p *Protocol) Setting(name string) *Setting {
	return find(p.Settings, func(s *Setting) bool { return s.Name == name })
}

// Told are the settings' values by name.
func (p *Protocol) Told() map[string]string {
	if len(p.Settings) == 0 {
		return nil
	}
	told := make(map[string]string, len(p.Settings))
	for _, s := range p.Settings {
		told[s.Name] = s.Value
	}
	return told
}

// Metric returns the metric of that name, nil if there is none.
func (p *Protocol) Metric(name string) *Metric {
	return find(p.Metrics, func(m *Metric) bool { return m.Name == name })
}

// Check returns the check of that name, nil if there is none.
func (p *Protocol) Check(name string) *Check {
	return find(p.Checks, func(c *Check) bool { return c.Name == name })
}

func find[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// TimeoutIn is the longest time of one trial of the arm in the cell.
func (p *Protocol) TimeoutIn(a *Arm, c Cell) time.Duration {
	for _, o := range slices.Backward(p.Overrides) { // the last one counts, as in Cells
		if o.Timeout > 0 && o.Cells.Match(c) {
			return time.Duration(o.Timeout)
		}
	}
	return a.Timeout.Or(DefaultTimeout)
}

// Or is the duration, or def where none was given.
func (d Duration) Or(def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return time.Duration(d)
}

// MarshalText writes the duration as Go does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

// Units of the sources that the operating system measures, as the divisor of
// seconds or bytes.
var (
	timeUnits   = map[string]float64{"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
	memoryUnits = map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// Scale is the size of the metric's unit in seconds or bytes, for the sources
// that the operating system measures, and 1 for all others.
func (m *Metric) Scale() float64 {
	if s, ok := m.units()[m.Unit]; ok {
		return s
	}
	return 1
}

func (m *Metric) units() map[string]float64 {
	switch m.Source {
	case SourceWall, SourceUser, SourceSystem, SourceCPU:
		return timeUnits
	case SourcePeakMemory:
		return memoryUnits
	}
	return nil
}
