package screeningwrite

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// Bounds of a corpus file, far above any library that people screen.
const (
	maxCorpusBytes = 256 << 20
	maxRecords     = 1_000_000
)

// corpus is the large corpus: the titles of a file, or as many made ones as the plan
// says. what says where they come from.
func corpus(p plan) (titles []string, what string, err error) {
	if p.corpus != "" {
		return readCorpus(p.corpus)
	}
	titles = make([]string, p.studies)
	for i := range titles {
		titles[i] = fmt.Sprintf("study %d", i+1)
	}
	return titles, "", nil
}

func readCorpus(path string) (titles []string, what string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", fmt.Errorf("corpus: %w", err)
	}
	if info.Size() > maxCorpusBytes {
		return nil, "", fmt.Errorf("corpus %s has %d bytes, at most %d are read", path, info.Size(), maxCorpusBytes)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("corpus: %w", err)
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".ris":
		titles, err = readRIS(bytes.NewReader(b))
	case ".csv":
		titles, err = readCSV(bytes.NewReader(b))
	default:
		err = fmt.Errorf("its name ends in %q; .ris and .csv are read", ext)
	}
	if err == nil && len(titles) < smallStudies {
		err = fmt.Errorf("it has %d records, at least %d are needed", len(titles), smallStudies)
	}
	if err != nil {
		return nil, "", fmt.Errorf("corpus %s: %w", path, err)
	}
	return titles, fmt.Sprintf("corpus %s: %d records, SHA-256 %x", filepath.Base(path), len(titles), sha256.Sum256(b)), nil
}

// readRIS reads the titles of a file in the RIS format of reference managers: records of
// lines "XX  - value" that begin with TY and end with ER. A line without a tag goes on
// with the value before it. The first of TI, T1, CT and BT is the title.
func readRIS(r io.Reader) ([]string, error) {
	var titles []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4<<20)
	inside, begun, last := false, 0, ""
	values := map[string]string{}
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r ")
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if !utf8.ValidString(line) {
			return nil, fmt.Errorf("line %d is not UTF-8; convert the file first", n)
		}
		tag, value, tagged := risTag(line)
		switch {
		case strings.TrimSpace(line) == "":
		case tagged && tag == "TY":
			if inside {
				return nil, fmt.Errorf("line %d: a record begins, the one from line %d has no end (ER)", n, begun)
			}
			inside, begun, last = true, n, tag
			clear(values)
		case !inside:
			return nil, fmt.Errorf("line %d: %.40q is outside of any record; a record begins with TY", n, line)
		case tagged && tag == "ER":
			inside = false
			titles = append(titles, title(values, len(titles)))
			if len(titles) > maxRecords {
				return nil, fmt.Errorf("line %d: more than %d records", n, maxRecords)
			}
		case tagged:
			if _, twice := values[tag]; !twice {
				values[tag] = value
				last = tag
			} else {
				last = "" // of authors, keywords and the like the first will do
			}
		case last != "":
			values[last] += " " + strings.TrimSpace(line)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if inside {
		return nil, fmt.Errorf("the record from line %d has no end (ER); is the file cut off?", begun)
	}
	return titles, nil
}

// risTag splits "XX  - value". Some programs leave out the blank at the end of ER.
func risTag(line string) (tag, value string, ok bool) {
	if len(line) < 5 || line[2:5] != "  -" || !risLetter(line[0]) || !risLetter(line[1]) && (line[1] < '0' || line[1] > '9') {
		return "", "", false
	}
	return line[:2], strings.TrimSpace(line[5:]), true
}

func risLetter(b byte) bool { return b >= 'A' && b <= 'Z' }

func title(values map[string]string, n int) string {
	for _, tag := range []string{"TI", "T1", "CT", "BT"} {
		if values[tag] != "" {
			return values[tag]
		}
	}
	return fmt.Sprintf("untitled %d", n+1)
}

// readCSV reads the column title of a CSV file with a header.
func readCSV(r io.Reader) ([]string, error) {
	c := csv.NewReader(r)
	header, err := c.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("it is empty")
	}
	if err != nil {
		return nil, err
	}
	column := -1
	for i, name := range header {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		if name == "title" || column < 0 && (name == "article title" || name == "primary title") {
			column = i
		}
	}
	if column < 0 {
		return nil, fmt.Errorf("no column is called title, there are: %.200s", strings.Join(header, ", "))
	}
	var titles []string
	for {
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			return titles, nil
		}
		if err != nil {
			return nil, err
		}
		if len(titles) == maxRecords {
			return nil, fmt.Errorf("more than %d records", maxRecords)
		}
		titles = append(titles, title(map[string]string{"TI": strings.TrimSpace(record[column])}, len(titles)))
	}
}

// shortTitle is a title as part of a study's name.
func shortTitle(s string) string {
	const most = 80
	s = strings.Join(strings.Fields(s), " ")
	for len(s) > most {
		_, size := utf8.DecodeLastRuneInString(s[:most+1])
		s = s[:most+1-size]
	}
	return strings.ToValidUTF8(s, "")
}
