package stats

import (
	"math/rand/v2"
	"testing"
)

const (
	experiments = 4000
	rounds      = 20
	alpha       = 0.05
)

// session is a simulated experiment of rounds of two trials, in which the order
// of the arms is drawn by blocks of two rounds: one AB and one BA, in random
// order. All quantities are in SDs of a trial's own noise.
type session struct {
	effect      float64 // added to every treatment trial
	drift       float64 // rise from the first trial to the last
	second      float64 // added to whichever arm runs second
	roundNoise  float64 // SD of the noise that both trials of a round share
	ref, treat  []float64
	treatFirsts []bool
}

func (s *session) run(r *rand.Rand) {
	s.ref, s.treat, s.treatFirsts = nil, nil, nil
	trial := 0
	read := func(shared float64) float64 {
		rise := s.drift * float64(trial) / (2*rounds - 1)
		trial++
		return shared + rise + r.NormFloat64()
	}
	for block := 0; block < rounds; block += 2 {
		treatFirst := r.IntN(2) == 0
		for range 2 {
			shared := s.roundNoise * r.NormFloat64()
			first := read(shared)
			second := read(shared) + s.second
			ref, treat := first, second
			if treatFirst {
				ref, treat = second, first
			}
			s.ref = append(s.ref, ref)
			s.treat = append(s.treat, treat+s.effect)
			s.treatFirsts = append(s.treatFirsts, treatFirst)
			treatFirst = !treatFirst
		}
	}
}

// blocks returns the means of each block of two rounds, in which every arm ran
// first once.
func blocks(xs []float64) []float64 {
	means := make([]float64, len(xs)/2)
	for i := range means {
		means[i] = (xs[2*i] + xs[2*i+1]) / 2
	}
	return means
}

// rate returns the share of simulated sessions that a test rejects.
func rate(t *testing.T, s session, p func(s *session) (float64, error)) float64 {
	t.Helper()
	r := rand.New(rand.NewPCG(2024, 7))
	rejected := 0
	for range experiments {
		s.run(r)
		p, err := p(&s)
		if err != nil {
			t.Fatal(err)
		}
		if p <= alpha {
			rejected++
		}
	}
	return float64(rejected) / experiments
}

func pairedP(s *session) (float64, error) {
	res, err := Paired(s.ref, s.treat, 0.95)
	return res.P, err
}

func pairedBlocksP(s *session) (float64, error) {
	res, err := Paired(blocks(s.ref), blocks(s.treat), 0.95)
	return res.P, err
}

// primaryP is the default primary of a protocol.
func primaryP(s *session) (float64, error) {
	refSlot, treatSlot := make([]int, len(s.ref)), make([]int, len(s.ref))
	for i, first := range s.treatFirsts {
		if first {
			refSlot[i] = 1
		} else {
			treatSlot[i] = 1
		}
	}
	res, err := PairedSlots(s.ref, s.treat, refSlot, treatSlot, 0.95)
	return res.P, err
}

func welchP(s *session) (float64, error) {
	res, err := Welch(MomentsOf(s.ref), MomentsOf(s.treat), 0.95)
	return res.P, err
}

func orderP(s *session) (float64, error) {
	res, err := OrderEffect(differences(s.ref, s.treat), s.treatFirsts, 0.95)
	return res.P, err
}

func between(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	t.Logf("%s: %.4f", what, got)
	if got < low || got > high {
		t.Errorf("%s: got %v, want between %v and %v", what, got, low, high)
	}
}

func TestFalsePositiveRate(t *testing.T) {
	between(t, "quiet", rate(t, session{}, pairedP), 0.03, 0.07)
	between(t, "round noise", rate(t, session{roundNoise: 2}, pairedP), 0.03, 0.07)
	between(t, "drift", rate(t, session{drift: 3}, pairedP), 0.03, 0.07)
	between(t, "quiet, order", rate(t, session{}, orderP), 0.03, 0.07)
	between(t, "drift, order", rate(t, session{drift: 3}, orderP), 0.03, 0.07)

	// The default primary keeps its level whatever the order does.
	for _, s := range []session{{}, {roundNoise: 2}, {drift: 3}, {second: 1}, {second: 1, drift: 3, roundNoise: 2}} {
		got := rate(t, s, primaryP)
		between(t, "default primary", got, 0.03, 0.07)
		t.Logf("figure: stats.false-positives %.4f", got)
	}

	// Balanced orders cancel the slow second slot from the mean difference but
	// leave it in the spread of the differences, so the test errs on the safe
	// side. Pairing whole blocks takes it out of both.
	slow := session{second: 1}
	between(t, "slow second slot", rate(t, slow, pairedP), 0, 0.05)
	between(t, "slow second slot, blocks", rate(t, slow, pairedBlocksP), 0.03, 0.07)
}

func TestPower(t *testing.T) {
	shared := session{effect: 1, roundNoise: 2}
	between(t, "paired", rate(t, shared, pairedP), 0.75, 1)
	welch, primary := rate(t, shared, welchP), rate(t, shared, primaryP)
	between(t, "Welch", welch, 0, 0.3)
	between(t, "default primary", primary, 0.75, 1)
	t.Logf("figure: stats.power-gain %.2f ×", primary/welch)
	between(t, "default primary, slow second slot", rate(t, session{effect: 1, second: 2, roundNoise: 2}, primaryP), 0.75, 1)
	between(t, "slow second slot, order", rate(t, session{second: 1}, orderP), 0.75, 1)
}
