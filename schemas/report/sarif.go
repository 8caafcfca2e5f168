// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/rulebook"
)

// writeSARIF writes SARIF 2.1.0 with descriptions of the violated rules.
func writeSARIF(w io.Writer, violations []schemas.Violation, o Options) error {
	rules, err := rulebook.Rules()
	if err != nil {
		return err
	}
	described := map[string]schemas.Rule{}
	for _, rule := range rules {
		described[rule.ID] = rule
	}
	run := sarif.NewRunWithInformationURI("pergola", "https://github.com/pergola-dev/pergola")
	if o.Version != "" {
		run.Tool.Driver.WithVersion(o.Version)
	}
	files := newSourceCache(o.ReadSource)
	run.WithColumnKind("unicodeCodePoints")
	for _, v := range violations {
		id := v.Rule
		if id == "" {
			id = schemas.RuleStructure
		}
		rule := run.AddRule(id)
		if d, ok := described[id]; ok && rule.ShortDescription == nil {
			rule.WithShortDescription(sarifText(d.Title)).WithFullDescription(sarifText(d.Doc)).WithHelp(sarifText(d.Doc + " Source: " + d.Source + ".")).WithHelpURI(rulebook.RuleLink(d))
		}
		result := sarif.NewRuleResult(id).
			WithRuleIndex(slices.Index(run.Tool.Driver.Rules, rule)).
			WithLevel(string(v.Severity)).
			WithMessage(sarif.NewTextMessage(findingText(v))).
			WithLocations([]*sarif.Location{sarifLocation(v)})
		if link := files.documentationLink(v); link != "" {
			result.WithProperties(sarif.NewPropertyBag().Add("documentation", link))
		}
		run.AddResult(result)
	}
	document := sarif.NewReport().AddRun(run)
	if err := document.PrettyWrite(w); err != nil {
		return fmt.Errorf("writing SARIF: %w", err)
	}
	_, err = io.WriteString(w, "\n")
	return err
}

func sarifText(text string) *sarif.MultiformatMessageString {
	return sarif.NewMultiformatMessageString().WithText(text)
}

func findingText(v schemas.Violation) string {
	if v.Field == "" {
		return v.Message
	}
	return v.Field + ": " + v.Message
}

func sarifLocation(v schemas.Violation) *sarif.Location {
	place := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewSimpleArtifactLocation((&url.URL{Path: filepath.ToSlash(v.File)}).String()))
	if v.Line > 0 {
		region := sarif.NewRegion().WithStartLine(v.Line)
		if v.Column > 0 {
			region.WithStartColumn(v.Column)
		}
		place.WithRegion(region)
	}
	l := sarif.NewLocationWithPhysicalLocation(place)
	if v.Kind != "" {
		logical := sarif.NewLogicalLocation().WithKind("object").WithFullyQualifiedName(objectTitle(v))
		if v.Field != "" {
			logical.WithName(v.Field)
		}
		l.AddLogicalLocation(logical)
	}
	return l
}
