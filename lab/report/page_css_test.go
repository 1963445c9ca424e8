package report

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var variable = regexp.MustCompile(`--([a-z0-9-]+): #([0-9a-f]{6})`)

// palettes are the colours of light, dark and print, in the order of the file.
func palettes(t *testing.T) []map[string]float64 {
	var all []map[string]float64
	for _, block := range strings.Split(pageStyle, ":root {")[1:] {
		block, _, _ = strings.Cut(block, "}")
		p := map[string]float64{}
		for _, m := range variable.FindAllStringSubmatch(block, -1) {
			p[m[1]] = luminance(t, m[2])
		}
		all = append(all, p)
	}
	if len(all) != 3 {
		t.Fatalf("%d palettes", len(all))
	}
	return all
}

// luminance is that of WCAG 2.
func luminance(t *testing.T, hex string) float64 {
	n, err := strconv.ParseUint(hex, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(n>>(16-8*i)&255) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// WCAG AA asks for 4.5 between text and what is behind it, and for 3 of lines
// and marks that carry meaning.
func TestContrast(t *testing.T) {
	for i, p := range palettes(t) {
		atLeast := func(fore, back string, want float64) {
			a, okA := p[fore]
			b, okB := p[back]
			if ratio := (math.Max(a, b) + 0.05) / (math.Min(a, b) + 0.05); !okA || !okB || ratio < want {
				t.Errorf("palette %d: %s on %s has a contrast of %.2f, want %v", i, fore, back, ratio, want)
			}
		}
		for _, back := range []string{"paper", "wash", "mark"} {
			for _, fore := range []string{"ink", "muted", "link"} {
				atLeast(fore, back, 4.5)
			}
		}
		for _, class := range []string{"go", "no-go", "inconclusive", "invalid"} {
			atLeast(class, "paper", 4.5)
			atLeast(class, class+"-wash", 4.5)
			atLeast("ink", class+"-wash", 4.5)
			atLeast("muted", class+"-wash", 4.5)
		}
		for arm := range armStyles {
			atLeast("arm"+strconv.Itoa(arm), "paper", 3)
		}
	}
}

func TestNoTextBelowTwelvePixels(t *testing.T) {
	for _, m := range regexp.MustCompile(`font(?:-size)?: ([0-9.]*)(rem|px|em)`).FindAllStringSubmatch(pageStyle, -1) {
		size, err := strconv.ParseFloat("0"+m[1], 64)
		if m[2] != "px" {
			size *= 14 // the least that the page's own size is, in print
		}
		if err != nil || size < 12 {
			t.Errorf("%s is %v px", m[0], size)
		}
	}
}
