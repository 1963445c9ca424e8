package screeningwrite

import "fmt"

// corpus is the large corpus: the titles of a file, or as many made ones as the plan says.
func corpus(p plan) ([]string, error) {
	if p.corpus != "" {
		return nil, fmt.Errorf("TODO")
	}
	titles := make([]string, p.studies)
	for i := range titles {
		titles[i] = fmt.Sprintf("study %d", i+1)
	}
	return titles, nil
}
