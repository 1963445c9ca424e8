package cli

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assaylab/assay/lab/flow"
	"github.com/assaylab/assay/lab/protocol"
)

// draft is a protocol in the making.
type draft struct {
	p protocol.Protocol
}

func (c *comparison) draft() (*draft, error) {
	d := &draft{p: protocol.Protocol{
		Schema: protocol.SchemaVersion, Name: "compare", Question: "Which of these is faster?",
		Design:  protocol.Design{Rounds: 2, Warmup: c.warmup, Seed: c.seed},
		Metrics: []protocol.Metric{{Name: "wall", Unit: "s", Better: "lower", Source: protocol.SourceWall}},
		Primary: &protocol.Primary{Metric: "wall"},
		Decision: protocol.Decision{Outcomes: []protocol.Outcome{
			{Name: "FASTER", Class: "inconclusive", When: "primary.significant && primary.better"},
			{Name: "SLOWER", Class: "inconclusive", When: "primary.significant && primary.worse"},
			{Name: "NO-DIFFERENCE-SHOWN", Class: "inconclusive"},
		}},
	}}
	if err := d.factors(c); err != nil {
		return nil, err
	}
	ok, err := okExit(c.ignore)
	if err != nil {
		return nil, err
	}
	commands := c.commands
	if len(c.revs) > 0 {
		commands = slices.Repeat(c.commands, len(c.revs))
	}
	used := map[string]bool{}
	for i, line := range commands {
		a := protocol.Arm{Setup: c.setup, Prepare: c.prepare, Cleanup: c.cleanup, Timeout: protocol.Duration(c.timeout), OKExit: ok}
		name := line
		if len(c.revs) > 0 {
			a.Rev, name = c.revs[i], c.revs[i]
		}
		if i < len(c.names) {
			name = c.names[i]
		}
		a.Name = armName(name, i, used)
		if c.noShell {
			for _, arg := range strings.Fields(line) {
				a.Command = append(a.Command, d.substitute(arg, func(v string) string { return "${" + v + "}" }))
			}
		} else {
			a.Shell = d.substitute(line, func(v string) string { return "$" + v })
		}
		for _, hook := range []*string{&a.Setup, &a.Prepare, &a.Cleanup} {
			*hook = d.substitute(*hook, func(v string) string { return "$" + v })
		}
		d.p.Arms = append(d.p.Arms, a)
	}
	return d, nil
}

var notLabel = regexp.MustCompile(`[^A-Za-z0-9._]+`)

// armName makes a command a name that files, benchmarks and rules can carry.
func armName(s string, i int, used map[string]bool) string {
	name := strings.Trim(notLabel.ReplaceAllString(s, "-"), "-._")
	if len(name) > 40 {
		name = strings.TrimRight(name[:40], "-._")
	}
	if name == "" {
		name = "command"
	}
	if used[name] {
		name += "." + strconv.Itoa(i+1)
	}
	used[name] = true
	return name
}

func okExit(list string) ([]int, error) {
	switch list {
	case "":
		return []int{0}, nil
	case "all":
		all := make([]int, 256)
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	ok := []int{0}
	for _, f := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 0 || n > 255 {
			return nil, usage("--ignore-failure: %q is not an exit status", f)
		}
		ok = append(ok, n)
	}
	return ok, nil
}

func (d *draft) factors(c *comparison) error {
	add := func(name string, levels []string) {
		f := protocol.Factor{Name: name}
		for _, l := range levels {
			f.Levels = append(f.Levels, protocol.Scalar(l))
		}
		d.p.Factors = append(d.p.Factors, f)
	}
	for _, l := range c.params {
		name, values, ok := strings.Cut(l, "=")
		if !ok {
			return usage("--parameter-list is NAME=a,b,c, not %q", l)
		}
		add(name, strings.Split(values, ","))
	}
	for _, sc := range c.scans {
		name, span, ok := strings.Cut(sc, "=")
		parts := strings.Split(span, ":")
		if !ok || len(parts) < 2 || len(parts) > 3 {
			return usage("--parameter-scan is NAME=min:max[:step], not %q", sc)
		}
		nums := []float64{0, 0, 1}
		for i, part := range parts {
			v, err := strconv.ParseFloat(part, 64)
			if err != nil {
				return usage("--parameter-scan: %q is not a number", part)
			}
			nums[i] = v
		}
		if !(nums[2] > 0) || nums[0] > nums[1] || (nums[1]-nums[0])/nums[2] > 1000 {
			return usage("--parameter-scan %q: the range is empty or has more than 1000 steps", sc)
		}
		var levels []string
		for i := 0; nums[0]+float64(i)*nums[2] <= nums[1]*(1+1e-12); i++ {
			levels = append(levels, strconv.FormatFloat(nums[0]+float64(i)*nums[2], 'g', 10, 64))
		}
		add(name, levels)
	}
	return nil
}

// substitute replaces {name} by the variable that carries the factor's level.
func (d *draft) substitute(s string, ref func(string) string) string {
	for _, f := range d.p.Factors {
		s = strings.ReplaceAll(s, "{"+f.Name+"}", ref(protocol.FactorVar(f.Name)))
	}
	return s
}

// plan passes the draft through the same parser as every protocol file.
func (d *draft) plan() (*flow.Plan, error) {
	b, err := json.Marshal(&d.p)
	if err != nil {
		return nil, err
	}
	p, faults := protocol.Parse("compare", b, nil)
	if len(faults) > 0 {
		var said []string
		for _, f := range faults {
			said = append(said, f.Message)
		}
		return nil, usage("%s", strings.Join(said, "; "))
	}
	return &flow.Plan{Protocol: p, Source: "compare", Dir: "."}, nil
}

// fit takes in what the pilot has shown: how many rounds fit into the time,
// and which figures the commands print.
func (d *draft) fit(c *comparison, p pilotRun, cells int) {
	d.p.Design.Rounds = c.rounds
	if c.rounds == 0 {
		n := int(compareFor / max(p.round*time.Duration(cells), time.Microsecond))
		d.p.Design.Rounds = min(max(n, leastRounds), mostRounds)
	}
	if len(p.bench) == 0 {
		return
	}
	d.p.Metrics = nil
	used := map[string]bool{}
	keys := make([]string, 0, len(p.bench))
	for k := range p.bench {
		keys = append(keys, k)
	}
	// Times first: the first metric is the primary one.
	slices.SortFunc(keys, func(a, b string) int {
		if x, y := strings.HasSuffix(a, " ns/op"), strings.HasSuffix(b, " ns/op"); x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return strings.Compare(a, b)
	})
	for _, k := range keys {
		bench, unit, _ := strings.Cut(k, " ")
		better := "lower"
		if strings.HasSuffix(unit, "/s") {
			better = "higher"
		}
		m := protocol.Metric{Name: metricName(bench+"_"+unit, used), Unit: unit, Better: better, Source: protocol.SourceGoBench, Key: bench}
		d.p.Metrics = append(d.p.Metrics, m)
	}
	d.p.Primary.Metric = d.p.Metrics[0].Name
}

var notIdent = regexp.MustCompile(`[^a-z0-9]+`)

func metricName(s string, used map[string]bool) string {
	name := strings.Trim(notIdent.ReplaceAllString(strings.ToLower(s), "_"), "_")
	if name == "" || name[0] < 'a' {
		name = "m_" + name
	}
	for base, i := name, 2; used[name]; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	used[name] = true
	return name
}
