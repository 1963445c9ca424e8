package protocol

// defaults fills in what the author left out, so that the canonical bytes
// hold every value the run depends on.
func (p *Protocol) defaults() {
	set := func(s *string, def string) {
		if *s == "" {
			*s = def
		}
	}
	for i := range p.Arms {
		a := &p.Arms[i]
		set(&a.Class, ClassCompared)
		if a.Timeout == 0 {
			a.Timeout = Duration(DefaultTimeout)
		}
		if len(a.OKExit) == 0 {
			a.OKExit = []int{0}
		}
	}
	for i := range p.Settings {
		set(&p.Settings[i].Effect, EffectPlan)
	}
	set(&p.Design.Isolation, IsolationProcess)
	set(&p.Design.Stop, "fixed")
	set(&p.Design.Scratch, "any")
	for i := range p.Metrics {
		m := &p.Metrics[i]
		set(&m.Key, m.Name)
		set(&m.Summarise, StatMean)
		if m.units() != nil {
			set(&m.Unit, map[bool]string{true: "MiB", false: "s"}[m.Source == SourcePeakMemory])
		}
	}
	for i := range p.Checks {
		c := &p.Checks[i]
		if c.Operations == 0 {
			c.Operations = 1
		}
		if c.Timeout == 0 {
			c.Timeout = Duration(DefaultTimeout)
		}
	}
	if p.Primary != nil {
		set(&p.Primary.Test, TestPaired)
		if p.Primary.Alpha == 0 {
			p.Primary.Alpha = 0.05
		}
		if p.Primary.Treatment == "" && len(p.Arms) > 1 {
			p.Primary.Treatment = p.Arms[1].Name
		}
	}
	for _, rules := range [][]Rule{p.Vetoes, p.Gates} {
		for i := range rules {
			set(&rules[i].Statistic, StatMean)
			set(&rules[i].Class, ClassGated)
			if rules[i].Arm == "" && p.Primary != nil {
				rules[i].Arm = p.Primary.Treatment
			}
		}
	}
	for i := range p.Host {
		set(&p.Host[i].Unavailable, p.Host[i].Action)
	}
	p.Decision.expand(p)
}
