// Package report turns finished values into pages: terminal, Markdown, HTML,
// JSON, JUnit, CSV, benchfmt and the JSON that hyperfine writes.
//
// It must never know how a figure came about, computes no statistic and decides
// nothing: what it prints stands in results.json, verdict.json or the ledger. The
// same run gives the same bytes, in every format.
package report

import (
	"io"

	"github.com/assaylab/assay/lab/analysis"
	"github.com/assaylab/assay/lab/gate"
	"github.com/assaylab/assay/lab/host"
	"github.com/assaylab/assay/lab/ledger"
)

// Source is everything a page is made of.
type Source struct {
	Run     *ledger.Run
	Env     *host.Provenance
	Results *analysis.Results
	Verdict *gate.Verdict
}

// Format is one way to print a run.
type Format struct {
	Name  string
	About string
	Write func(w io.Writer, s *Source) error
}

// Formats lists every format. To add one, write a file with its function and
// add a line here.
var Formats = []Format{
	{"html", "one page that opens from disk, with figures as inline SVG", HTML},
	{"md", "Markdown for a pull request or $GITHUB_STEP_SUMMARY, below 64 KB", Markdown},
	{"tables", "Markdown tables of every comparison with its tests, for a document", Tables},
	{"text", "what a terminal shows at the end of a run", Text},
	{"json", "verdict and results as one object", JSON},
	{"junit", "JUnit XML; inconclusive is a failure", JUnit},
	{"csv", "tidy: one row per trial and metric", CSV},
	{"benchfmt", "Go benchmark format, for benchstat -col /arm", Benchfmt},
	{"hdr", "bulk samples as HdrHistogram percentile distributions", HDR},
	{"hyperfine", "the JSON of hyperfine --export-json, for its plot scripts", Hyperfine},
}

// Find returns the format of that name.
func Find(name string) (Format, bool) {
	for _, f := range Formats {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}
