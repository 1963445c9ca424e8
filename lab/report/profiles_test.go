package report

import (
	"strings"
	"testing"

	"github.com/assaylab/assay/lab/trial"
)

func TestAProfileOnThePage(t *testing.T) {
	o := &trial.Observation{Cell: "size=1", Arm: "new"}
	v := newPageProfile(&cellNames{}, o, &trial.Profile{Kind: "mutex", File: "a b#?.pb.gz", Total: 2, Top: []trial.ProfileEntry{{Function: "f", Seconds: 1.5}, {Function: "g", Seconds: 0.5}}})
	if v.Link != "profiles/a%20b%23%3F.pb.gz" {
		t.Errorf("link %q", v.Link)
	}
	if len(v.Top) != 2 || v.Top[0].Share != "75.0 %" || v.Top[1].Seconds != "0.500" || v.Total != "2.000 s" {
		t.Errorf("%+v", v)
	}
	if v := newPageProfile(&cellNames{}, o, &trial.Profile{Kind: "cpu", Top: []trial.ProfileEntry{{Function: "f"}}}); strings.Contains(v.Top[0].Share, "NaN") {
		t.Errorf("of an empty profile: %+v", v)
	}
}
