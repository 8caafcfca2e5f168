// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Report about the cases of some components.
type Report struct {
	Components []ComponentReport `json:"components"`
	Summary    Summary           `json:"summary"`
	// Files are the record of these components, by file name in the catalogue.
	Files map[string][]byte `json:"-"`
	// Stale are recorded files without a case.
	Stale []string `json:"stale,omitempty"`
}

// ComponentReport is about one component.
type ComponentReport struct {
	Name  string       `json:"name"`
	Cases []CaseReport `json:"cases"`

	recorded map[string][]byte
}

// CaseReport is about one case.
type CaseReport struct {
	Name        string `json:"name"`
	Description string `json:"about,omitempty"`
	// Error is the reason why it cannot be rendered.
	Error string `json:"error,omitempty"`
	// Unrecorded reports whether it has no record yet.
	Unrecorded  bool         `json:"unrecorded,omitempty"`
	Differences []Difference `json:"differences,omitempty"`

	files   map[string][]byte
	origins map[string]string
}

// Summary counts.
type Summary struct {
	Components int `json:"components"`
	Cases      int `json:"cases"`
	// EqualCases, Differ, New and Failed are cases.
	EqualCases     int `json:"same"`
	DifferentCases int `json:"differ"`
	NewCases       int `json:"new"`
	FailedCases    int `json:"failed"`
	// Added, Changed and Removed are objects.
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
	// Stale are recorded files.
	Stale int `json:"stale"`
	// WithoutCases are the components without cases.
	WithoutCases []string `json:"withoutCases,omitempty"`
}

// IsCurrent reports whether all renders match their records.
func (r *Report) IsCurrent() bool {
	return r.Summary.DifferentCases+r.Summary.NewCases+r.Summary.FailedCases+r.Summary.Stale == 0
}

// compare adds the differences.
func (r *Report) compare() {
	r.Summary.Components = len(r.Components)
	for i := range r.Components {
		c := &r.Components[i]
		if len(c.Cases) == 0 {
			r.Summary.WithoutCases = append(r.Summary.WithoutCases, c.Name)
		}
		stale := maps.Clone(c.recorded)
		for j := range c.Cases {
			one := &c.Cases[j]
			r.Summary.Cases++
			of := path.Join(c.Name, casesFolder, one.Name) + "/"
			recorded := map[string][]byte{}
			for file, data := range c.recorded {
				if strings.HasPrefix(file, of) {
					recorded[file] = data
					delete(stale, file)
				}
			}
			r.compareCase(one, recorded)
		}
		r.Stale = append(r.Stale, slices.Sorted(maps.Keys(stale))...)
	}
	slices.Sort(r.Stale)
	r.Summary.Stale = len(r.Stale)
}

func (r *Report) compareCase(one *CaseReport, recorded map[string][]byte) {
	if one.Error != "" {
		r.Summary.FailedCases++
		maps.Copy(r.Files, recorded) // a case that fails keeps its record
		return
	}
	maps.Copy(r.Files, one.files)
	if one.Unrecorded = len(recorded) == 0; one.Unrecorded {
		r.Summary.NewCases++
		return
	}
	all := maps.Clone(recorded)
	maps.Copy(all, one.files)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		was, is := recorded[file], one.files[file]
		if is == nil {
			r.Stale = append(r.Stale, file)
		}
		found := Compare(file, was, is)
		for k := range found {
			found[k].Origin = one.origins[strings.TrimSuffix(path.Base(file), ".yaml")+"/"+found[k].Object]
			switch found[k].Action {
			case Added:
				r.Summary.Added++
			case Removed:
				r.Summary.Removed++
			default:
				r.Summary.Changed++
			}
		}
		one.Differences = append(one.Differences, found...)
	}
	if len(one.Differences) > 0 {
		r.Summary.DifferentCases++
	} else {
		r.Summary.EqualCases++
	}
}
