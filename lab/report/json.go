package report

import (
	"encoding/json"
	"io"
	"time"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/protocol"
)

// JSONSchemaVersion is the version of the object that JSON writes. A key keeps
// its meaning within a version; new keys may come.
const JSONSchemaVersion = 1

type jsonPage struct {
	Schema      int               `json:"schema"`
	Name        string            `json:"name"`
	Outcome     string            `json:"outcome"`
	Class       gate.Class        `json:"class"`
	Exit        int               `json:"exit"`
	Lock        jsonLock          `json:"lock"`
	Verdict     *gate.Verdict     `json:"verdict"`
	Results     *analysis.Results `json:"results"`
	Environment *host.Provenance  `json:"environment"` // null where it could not be read
}

type jsonLock struct {
	Digest      string               `json:"digest"`
	SHA256      string               `json:"protocol_sha256"`
	Version     int                  `json:"version"`
	Tool        string               `json:"tool"`
	Frozen      time.Time            `json:"frozen"`
	Exploratory string               `json:"exploratory,omitempty"`
	Deviations  []protocol.Deviation `json:"deviations,omitempty"`
}

// JSON writes verdict and results as one object, with what identifies the run.
func JSON(w io.Writer, s *Source) error {
	l := s.Run.Lock
	b, err := json.MarshalIndent(jsonPage{
		Schema: JSONSchemaVersion, Name: s.Results.Name, Outcome: s.Verdict.Outcome, Class: s.Verdict.Class, Exit: s.Verdict.Exit,
		Lock:    jsonLock{l.Digest, l.SHA256, l.Version, l.Tool, l.Frozen, l.Exploratory, l.Deviations},
		Verdict: s.Verdict, Results: s.Results, Environment: s.Env,
	}, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
