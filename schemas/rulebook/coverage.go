// SPDX-License-Identifier: Apache-2.0

package rulebook

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// UpstreamStatement is a line of schemas/coverage.tsv: an upstream requirement or behaviour and its
// counterpart here.
type UpstreamStatement struct {
	ID     string
	Topic  string
	Source string // upstream code
	Text   string
	// Rules are ids of rules, structure (the kind's definition checks it) or default (a value is
	// filled in).
	Rules []string
	// Reason is why there is no rule, or a limit of the rule.
	Reason string
}

// Words for statements without a rule.
const (
	coveredByStructure = schemas.RuleStructure
	coveredByDefault   = "default"
)

const coverageHeader = "id\ttopic\tsource\tstatement\trules\treason"

// ReadCoverage parses schemas/coverage.tsv. Incomplete lines, unknown rules and repeated ids are
// errors.
func ReadCoverage(data []byte, rules []schemas.Rule) ([]UpstreamStatement, error) {
	lines := strings.Split(strings.TrimRight(string(bytes.TrimPrefix(data, []byte("\ufeff"))), "\n"), "\n")
	if lines[0] != coverageHeader {
		return nil, fmt.Errorf("line 1 must be %q", coverageHeader)
	}
	known := map[string]bool{coveredByStructure: true, coveredByDefault: true}
	for _, rule := range rules {
		known[rule.ID] = true
	}
	var faults []error
	var statements []UpstreamStatement
	seen := map[string]bool{}
	for i, line := range lines[1:] {
		fault := func(format string, args ...any) {
			faults = append(faults, fmt.Errorf("line %d: "+format, append([]any{i + 2}, args...)...))
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 6 {
			fault("has %d columns, but must have 6", len(columns))
			continue
		}
		s := UpstreamStatement{ID: columns[0], Topic: columns[1], Source: columns[2], Text: columns[3], Rules: strings.Fields(columns[4]), Reason: strings.TrimSpace(columns[5])}
		if s.ID == "" || s.Topic == "" || s.Source == "" || s.Text == "" {
			fault("id, topic, source and statement must be set")
		}
		if seen[s.ID] {
			fault("the id %s exists twice", s.ID)
		}
		seen[s.ID] = true
		if len(s.Rules) == 0 && s.Reason == "" {
			fault("%s has neither a rule nor a reason why there is none", s.ID)
		}
		for _, id := range s.Rules {
			if !known[id] {
				fault("%s names the rule %q, which does not exist", s.ID, id)
			}
		}
		statements = append(statements, s)
	}
	return statements, errors.Join(faults...)
}

// rulesWithoutStatement returns the ids of rules that no statement names.
func rulesWithoutStatement(statements []UpstreamStatement, rules []schemas.Rule) []string {
	named := map[string]bool{}
	for _, s := range statements {
		for _, id := range s.Rules {
			named[id] = true
		}
	}
	var ids []string
	for _, rule := range rules {
		if !named[rule.ID] {
			ids = append(ids, rule.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
