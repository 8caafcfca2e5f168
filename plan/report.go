// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/pergola-dev/pergola/change"
)

// Output formats of a report.
const (
	FormatText     = "text"
	FormatMarkdown = "markdown"
	FormatJSON     = "json"
	FormatHTML     = "html"
)

// Report has the plans of one or several landscapes. Changes that all have in common are printed
// once.
type Report struct {
	Landscapes []LandscapePlan `json:"landscapes"`
}

// LandscapePlan is the plan of one landscape.
type LandscapePlan struct {
	// Name identifies a landscape in the report, such as its folder; it may be empty for a single
	// one.
	Name string `json:"name"`
	change.Plan
}

// PrintOptions has the options for printing a report.
type PrintOptions struct {
	// Format is one of text, markdown, json, html.
	Format string
	// Colored applies to text.
	Colored bool
	// MaxBytes is the size of Markdown in bytes; 0 is MaxMarkdown.
	MaxBytes int
	// OmissionHint explains how to see omissions, such as "run `pergola diff prod --from main`". It
	// may be Markdown, because it comes from the program and not from a landscape.
	OmissionHint string
}

// Print writes a report. A single landscape without a name prints like its plan.
func (r Report) Print(w io.Writer, how PrintOptions) error {
	var err error
	switch how.Format {
	case FormatText:
		_, err = io.WriteString(w, r.text(how.Colored))
		for _, l := range r.Landscapes {
			if err == nil {
				err = PrintHandedOver(w, l.HandedOver)
			}
		}
	case FormatMarkdown:
		_, err = io.WriteString(w, r.Markdown(cmp.Or(how.MaxBytes, MaxMarkdown), how.OmissionHint))
	case FormatJSON:
		err = r.json(w)
	case FormatHTML:
		err = r.html(w)
	default:
		return fmt.Errorf("output format %q: want text, markdown, json or html", how.Format)
	}
	return err
}

// Print writes one plan; colored applies to text.
func Print(w io.Writer, p change.Plan, format string, colored bool) error {
	return Report{Landscapes: []LandscapePlan{{Plan: p}}}.Print(w, PrintOptions{Format: format, Colored: colored})
}

// IsEmpty reports whether nothing changes in any landscape.
func (r Report) IsEmpty() bool {
	return !slices.ContainsFunc(r.Landscapes, func(l LandscapePlan) bool { return !l.Plan.IsEmpty() })
}

// Summary counts the items of all landscapes.
func (r Report) Summary() change.Summary {
	var s change.Summary
	for _, l := range r.Landscapes {
		s.Add(l.Summary)
	}
	return s
}

// isSinglePlan reports whether the report has a single landscape without a name.
func (r Report) isSinglePlan() bool { return len(r.Landscapes) == 1 && r.Landscapes[0].Name == "" }

// hasNames reports whether places need the names of landscapes.
func (r Report) hasNames() bool {
	return len(r.Landscapes) > 1 || len(r.Landscapes) == 1 && r.Landscapes[0].Name != ""
}

// jsonPlan is the JSON form of a plan, with its effects.
type jsonPlan struct {
	Name string `json:"name,omitempty"`
	change.Plan
	Nodes         []NodeChange      `json:"nodes,omitempty"`
	ControlPlanes []ControlPlane    `json:"controlPlanes,omitempty"`
	Impacts       []Impact          `json:"impacts,omitempty"`
	Affected      []AffectedCluster `json:"reach,omitempty"`
}

func newJSONPlan(l LandscapePlan) jsonPlan {
	if l.Items == nil {
		l.Items = []change.Item{}
	}
	return jsonPlan{l.Name, l.Plan, NodeChanges(l.Plan), ControlPlanes(l.Plan), Impacts(l.Plan), AffectedClusters(l.Plan)}
}

func (r Report) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	if r.isSinglePlan() {
		return enc.Encode(newJSONPlan(r.Landscapes[0]))
	}
	all := make([]jsonPlan, 0, len(r.Landscapes))
	for _, l := range r.Landscapes {
		all = append(all, newJSONPlan(l))
	}
	return enc.Encode(struct {
		Landscapes []jsonPlan              `json:"landscapes"`
		Summary    change.Summary          `json:"summary"`
		Unchanged  int                     `json:"unchanged"`
		Unreached  change.UnaffectedOwners `json:"unreached,omitzero"`
	}{all, r.Summary(), r.unchangedCount(), r.unaffected()})
}

func (r Report) unaffected() change.UnaffectedOwners {
	var u change.UnaffectedOwners
	for _, l := range r.Landscapes {
		u.Add(l.Unaffected)
	}
	return u
}

func (r Report) unchangedCount() int {
	n := 0
	for _, l := range r.Landscapes {
		n += l.Unchanged
	}
	return n
}
