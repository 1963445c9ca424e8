package report

import (
	"fmt"
	"net/url"

	"github.com/assaylab/assay/lab/ledger"
	"github.com/assaylab/assay/lab/trial"
)

// pageProfile is one profile of one trial.
type pageProfile struct {
	Cell, Arm, Kind, Total, Link string
	Top                          []pageProfileEntry
}

type pageProfileEntry struct{ Function, Seconds, Share string }

// newPageProfiles are the profiles of the run, in the order of the schedule.
// They stand beside the page and need not be there for it to be read.
func newPageProfiles(s *Source, names *cellNames) []pageProfile {
	var all []pageProfile
	for _, o := range s.measured() {
		for i := range o.Profiles {
			if len(all) == pageRows {
				return all
			}
			all = append(all, newPageProfile(names, o, &o.Profiles[i]))
		}
	}
	return all
}

func newPageProfile(names *cellNames, o *trial.Observation, p *trial.Profile) pageProfile {
	v := pageProfile{
		Cell: names.of(o.Cell), Arm: o.Arm, Kind: p.Kind, Total: fmt.Sprintf("%.3f s", p.Total),
		Link: (&url.URL{Path: ledger.ProfilesDir + "/" + p.File}).String(),
	}
	for _, e := range p.Top {
		share := 0.0
		if p.Total > 0 {
			share = 100 * e.Seconds / p.Total
		}
		v.Top = append(v.Top, pageProfileEntry{e.Function, fmt.Sprintf("%.3f", e.Seconds), fmt.Sprintf("%.1f %%", share)})
	}
	return v
}

// mdProfiles are the profiles as tables.
func mdProfiles(p *markdownPage, s *Source) {
	for _, v := range newPageProfiles(s, &cellNames{}) {
		rows := []string{tableRow("function", "s", "share"), "|---|--:|--:|\n"}
		for _, e := range v.Top {
			rows = append(rows, tableRow(code(e.Function), e.Seconds, e.Share))
		}
		p.add(titled(fmt.Sprintf("Profile: %s of %s in %s, %s", v.Kind, v.Arm, v.Cell, v.Total), "", rows))
	}
}
