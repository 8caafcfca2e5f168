// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/health/custom"
	"github.com/pergola-dev/pergola/schemas"
)

// HealthConfig is the compiled spec.health of a landscape. Its zero value has only built-in rules.
type HealthConfig struct {
	// Rules precede the built-in ones; it is nil for none.
	Rules health.Rules
	// ExistenceOnly accepts any existing object whose kind has no rule.
	ExistenceOnly bool
}

// Options returns options for health.Check.
func (j HealthConfig) Options() []health.Option {
	options := []health.Option{health.WithRules(j.Rules)}
	if !j.ExistenceOnly {
		options = append(options, health.JudgeAllKinds())
	}
	return options
}

// HealthConfig compiles spec.health. It succeeds for each valid landscape.
func (l *Landscape) HealthConfig() (HealthConfig, error) {
	j, err := compileHealth(l.Config.Spec.Health)
	if err != nil {
		return j, fmt.Errorf("landscape.yaml: %s: %w", fieldHealth, err)
	}
	return j, nil
}

func compileHealth(spec *landscapev1alpha1.Health) (HealthConfig, error) {
	if spec == nil {
		return HealthConfig{}, nil
	}
	j := HealthConfig{ExistenceOnly: spec.OtherKinds == landscapev1alpha1.OtherKindsCheckExistence}
	if len(spec.Rules) == 0 {
		return j, nil
	}
	rules := make([]custom.Rule, len(spec.Rules))
	for i, r := range spec.Rules {
		rules[i] = custom.Rule{APIGroup: r.APIGroup, Kind: r.Kind, Healthy: r.Healthy, Progressing: r.Progressing, Message: r.Message}
	}
	set, err := custom.Compile(rules)
	if err != nil {
		return j, err
	}
	j.Rules = set
	return j, nil
}

// ParseHealthConfig reads a YAML or JSON file with the fields of spec.health, without a landscape.
// Places contain the name, and findings the fields of the file. With an error among them the result
// is unusable. An error is a failure without a finding.
func ParseHealthConfig(ctx context.Context, name string, data []byte) (HealthConfig, []schemas.Violation, error) {
	l := newLoader(ctx, nil, ".", Options{})
	config := l.parseHealth(name, data)
	if config == nil {
		return HealthConfig{}, l.violations, nil
	}
	typed := &landscapev1alpha1.Landscape{}
	found, err := schemas.Validate(ctx, []schemas.Input{config.Input()}, schemas.Options{})
	if err != nil {
		return HealthConfig{}, nil, fmt.Errorf("checking %s: %w", name, err)
	}
	spec, _ := config.Object().Object["spec"].(map[string]any)
	rules, _ := spec["health"].(map[string]any)
	l.reportHealth(config, rules, func(string) []byte { return data })
	found = append(l.violations, found...)
	for i := range found {
		found[i].Kind, found[i].Name = "", ""
		found[i].Field = strings.TrimPrefix(strings.TrimPrefix(found[i].Field, fieldHealth), ".")
	}
	schemas.SortViolations(found)
	if schemas.HasErrors(found) {
		return HealthConfig{}, found, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(config.Object().Object, typed); err != nil {
		return HealthConfig{}, found, fmt.Errorf("reading %s: %w", name, err)
	}
	j, err := compileHealth(typed.Spec.Health)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return j, found, err
}

// parseHealth returns the content of a file as a Landscape, with places in the file. It reports
// problems and returns nil for them.
func (l *loader) parseHealth(name string, data []byte) *Declaration {
	if limit := l.limits.FileSize; int64(len(data)) > limit {
		l.reportTooLong(name, int64(len(data)))
		return nil
	}
	if !l.requireText(name, data) {
		return nil
	}
	const want = "must hold one document with the fields of spec.health: rules, otherKinds"
	documents := splitDocuments(data)
	if len(documents) != 1 {
		l.report(name, 1, 1, ruleHealth, schemas.TypeInvalid, want)
		return nil
	}
	value, node := l.parseDocument(name, documents[0])
	if node == nil {
		return nil
	}
	content, ok := value.(map[string]any)
	if !ok {
		l.report(name, node.Line, node.Column, ruleHealth, schemas.TypeInvalid, want)
		return nil
	}
	if content["kind"] == configKind {
		l.report(name, node.Line, node.Column, ruleHealth, schemas.TypeInvalid,
			"is a Landscape: write the fields of its spec.health to a file of their own, and give that file")
		return nil
	}
	d := &Declaration{File: name, Line: node.Line, Column: node.Column}
	in := func(field string, child *positionTree) *positionTree {
		return &positionTree{position: child.position, isMap: true, fields: map[string]*positionTree{field: child}}
	}
	tree := in("spec", in("health", newPositionTree(name, node, 0)))
	d.setContent(declaredContent{origins: []origin{{tree: func() *positionTree { return tree }}}, object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": landscapev1alpha1.SchemeGroupVersion.String(), "kind": configKind, "metadata": map[string]any{"name": "health"},
		"spec": map[string]any{"health": content},
	}}})
	return d
}
