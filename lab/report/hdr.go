package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/assaylab/assay/lab/trial"
)

// hdrDigits is how many digits of a value the histograms keep. The samples
// themselves, in the ledger, keep all.
const hdrDigits = 3

// hdrTicks is how finely the tail is listed: lines per halving of the distance
// to 100 %.
const hdrTicks = 5

// HDR writes the bulk samples of each cell and arm as HdrHistogram percentile
// distributions, in the form that the HdrHistogram plotters read, each followed
// by the whole histogram in its exchange encoding (V2, deflated, base64). They
// are made from the samples in the ledger, with warm-up and failed trials left
// out, and are not part of results.json: the deflated bytes may differ from one
// Go version to the next.
func HDR(w io.Writer, s *Source) error {
	type place struct{ cell, arm, name string }
	var order []place
	samples := map[place][]int64{}
	for _, rec := range s.Run.Records {
		o := rec.Trial
		if o == nil || o.Warmup || o.Status != trial.StatusOK {
			continue
		}
		for _, ref := range o.Samples {
			p := place{o.Cell, o.Arm, ref.Name}
			v, err := s.Run.Samples(ref)
			if err != nil {
				return err
			}
			if samples[p] == nil {
				order = append(order, p)
			}
			samples[p] = append(samples[p], v...)
		}
	}
	slices.SortFunc(order, func(a, b place) int {
		return slices.Compare([]string{a.cell, a.name, a.arm}, []string{b.cell, b.name, b.arm})
	})
	if !s.Results.Clear {
		_, err := fmt.Fprintln(w, "#[figures are withheld: not every check passed]")
		return err
	}
	if len(order) == 0 {
		_, err := fmt.Fprintln(w, "#[no arm reported bulk samples]")
		return err
	}
	for _, p := range order {
		h, err := histogram(samples[p])
		if err != nil {
			return fmt.Errorf("samples %q of arm %s in cell %s: %w", p.name, p.arm, p.cell, err)
		}
		code, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "#[cell=%q arm=%q samples=%q]\n", p.cell, p.arm, p.name)
		if _, err := h.PercentilesPrint(w, hdrTicks, 1); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "#[encoded=%s]\n\n", code); err != nil {
			return err
		}
	}
	return nil
}

func histogram(samples []int64) (*hdrhistogram.Histogram, error) {
	h := hdrhistogram.New(1, max(slices.Max(samples), 2), hdrDigits)
	for _, v := range samples {
		if err := h.RecordValue(v); err != nil {
			return nil, err
		}
	}
	return h, nil
}
