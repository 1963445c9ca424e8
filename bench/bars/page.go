package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var reasonHead = regexp.MustCompile(`^Why missed \(([^)]*)\):\s*`)

// readReasons finds the paragraphs that begin with "Why missed (ID, ID):" in the
// sections' pages, by id. Such a paragraph about a bar that the page is not responsible for, or that
// does not exist, is an error, as are two about one bar.
func readReasons(docs string, all []section) (map[string]string, error) {
	reasons := map[string]string{}
	read := map[string]bool{}
	for _, s := range all {
		if s.doc == "" || read[s.doc] {
			continue
		}
		read[s.doc] = true
		b, err := os.ReadFile(filepath.Join(docs, s.doc))
		if err != nil {
			return nil, err
		}
		for paragraph := range strings.SplitSeq(strings.ReplaceAll(string(b), "\r", ""), "\n\n") {
			paragraph = strings.TrimSpace(paragraph)
			head := reasonHead.FindStringSubmatch(paragraph)
			if head == nil {
				if strings.Contains(paragraph, "Why missed (") {
					return nil, fmt.Errorf("docs/%s: %.60q: a reason is a paragraph of its own that begins with \"Why missed (ID):\"", s.doc, paragraph)
				}
				continue
			}
			text := strings.Join(strings.Fields(paragraph[len(head[0]):]), " ")
			if text == "" {
				return nil, fmt.Errorf("docs/%s: the reason of %s is empty", s.doc, head[1])
			}
			for id := range strings.SplitSeq(head[1], ",") {
				id = strings.Trim(strings.TrimSpace(id), "`")
				switch {
				case !s.has(id, all):
					return nil, fmt.Errorf("docs/%s gives a reason for %q, which is none of its bars; `go run ./bench/bars -list` prints them", s.doc, id)
				case reasons[id] != "":
					return nil, fmt.Errorf("docs/%s gives two reasons for %s", s.doc, id)
				}
				reasons[id] = text
			}
		}
	}
	return reasons, nil
}

// has is true for bars of all sections with the same page.
func (s section) has(id string, all []section) bool {
	return slices.ContainsFunc(all, func(o section) bool {
		return o.doc == s.doc && slices.ContainsFunc(o.bars, func(b bar) bool { return b.id == id })
	})
}

// page is docs/figures.md.
func page(all []section, rec *record, reasons map[string]string) []byte {
	var w bytes.Buffer
	count := map[state]int{}
	var machines []string
	for _, b := range bars(all) {
		e := rec.find(b.id)
		count[b.judge(e)]++
		if e.Machine != "" && !slices.Contains(machines, e.Machine) {
			machines = append(machines, e.Machine)
		}
	}
	fmt.Fprintf(&w, `# Figures

Made by %s from docs/%s and not by hand; `+"`go run ./bench/bars -help`"+` says how. Every limit that the project
set itself stands here with the last figure, met or not. A figure that could not be taken is not met.

%d bars: %d met, %d missed, %d not measured.
`, "`make bars`", recordFile, len(bars(all)), count[met], count[missed], count[notMeasured])
	if len(machines) > 0 {
		fmt.Fprint(&w, "\n| machine | |\n|---|---|\n")
		for i, m := range machines {
			fmt.Fprintf(&w, "| %s | %s |\n", letter(i), cell(m))
		}
		fmt.Fprint(&w, "\n*Others* is the share of the processors that other programs used meanwhile.\n")
	}
	for _, s := range all {
		fmt.Fprintf(&w, "\n## %s\n\n| bar | wanted | figure | | command | where and when |\n|---|---|---|---|---|---|\n", s.title)
		for _, b := range s.bars {
			e := rec.find(b.id)
			verdict := string(b.judge(e))
			if b.judge(e) != met {
				verdict = "**" + verdict + "**"
			}
			command := e.Command
			if command == "" {
				command = b.by.line
			}
			fmt.Fprintf(&w, "| `%s`: %s | %s | %s | %s | `%s` | %s |\n", b.id, cell(b.about), cell(b.want.String()+b.inUnit()), cell(b.said(e)), verdict, cell(command), where(e, machines))
		}
		s.whyMissed(&w, rec, reasons)
	}
	return w.Bytes()
}

func (s section) whyMissed(w *bytes.Buffer, rec *record, reasons map[string]string) {
	var texts []string
	ids := map[string][]string{}
	for _, b := range s.bars {
		if b.judge(rec.find(b.id)) != missed {
			continue
		}
		text := reasons[b.id]
		if text == "" {
			text = "no reason recorded."
		} else {
			text += fmt.Sprintf(" ([%s](%s))", s.doc, s.doc)
		}
		if ids[text] == nil {
			texts = append(texts, text)
		}
		ids[text] = append(ids[text], "`"+b.id+"`")
	}
	if len(texts) == 0 {
		return
	}
	fmt.Fprint(w, "\nWhy missed:\n\n")
	for _, text := range texts {
		fmt.Fprintf(w, "- %s: %s\n", strings.Join(ids[text], ", "), text)
	}
}

func where(e entry, machines []string) string {
	if e.Command == "" {
		return ""
	}
	s := letter(slices.Index(machines, e.Machine)) + ", " + e.Time.Format("2006-01-02")
	if e.Revision != "" {
		s += ", " + e.Revision
	}
	if e.Others != nil {
		s += fmt.Sprintf(", others %.0f %%", 100**e.Others)
	}
	return s
}

// letter names a machine: A to Z, then A1 and so on.
func letter(i int) string {
	s := string(rune('A' + i%26))
	if i >= 26 {
		s += fmt.Sprint(i / 26)
	}
	return s
}

// cell is text that cannot end a cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}
