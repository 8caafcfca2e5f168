// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
)

// Values of an Extension may refer to Secrets and ConfigMaps of spec.deployment.resources: {{
// .resources.NAME.data.KEY }} (upstream: pkg/utils/chart/values.go). A render does not know their
// content and must not contain secrets. So it renders the chart with tokens, which the applier of
// the objects replaces by values. A chart may only write such a value, as it is or in base64. A
// second render with other tokens detects any other use.

// MarkFilledValues on an object describes its tokens: a JSON object from token to
// "<Kind>/<name>/<key>". The objects are in the namespace of the owner's control plane.
const MarkFilledValues = "secrets.pergola.dev/values-in"

// FilledValue is the source of the value for a token.
type FilledValue struct{ Kind, Name, Key string }

// FilledValues returns the sources of the tokens in an object, or nil if it has none.
func FilledValues(obj *unstructured.Unstructured) (map[string]FilledValue, error) {
	text, is := obj.GetAnnotations()[MarkFilledValues]
	if !is {
		return nil, nil
	}
	var sources map[string]string
	if err := json.Unmarshal([]byte(text), &sources); err != nil || len(sources) == 0 {
		return nil, fmt.Errorf("annotation %s is not a JSON object of text values", MarkFilledValues)
	}
	out := make(map[string]FilledValue, len(sources))
	for _, token := range sortedKeys(sources) {
		parts := strings.Split(sources[token], "/")
		if len(parts) != 3 || parts[0] != "Secret" && parts[0] != "ConfigMap" || token == "" {
			return nil, fmt.Errorf("annotation %s: %q comes from %q, expected <Secret or ConfigMap>/<name>/<key>", MarkFilledValues, token, sources[token])
		}
		out[token] = FilledValue{parts[0], parts[1], parts[2]}
	}
	return out, nil
}

// FillValues returns the object with values instead of tokens, and without the mark.
func FillValues(obj *unstructured.Unstructured, values map[string]string) *unstructured.Unstructured {
	out := obj.DeepCopy()
	annotations := out.GetAnnotations()
	delete(annotations, MarkFilledValues)
	if len(annotations) == 0 {
		annotations = nil
	}
	out.SetAnnotations(annotations)
	out.Object, _ = replaceTokens(out.Object, values).(map[string]any)
	return out
}

// replaceTokens replaces tokens by values in all texts, including base64.
func replaceTokens(value any, values map[string]string) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = replaceTokens(v[key], values)
		}
	case []any:
		for i := range v {
			v[i] = replaceTokens(v[i], values)
		}
	case string:
		if text, is := decodeWithToken(v, values); is {
			return base64.StdEncoding.EncodeToString([]byte(replaceTokensInText(text, values)))
		}
		return replaceTokensInText(v, values)
	}
	return value
}

func replaceTokensInText(text string, values map[string]string) string {
	pairs := make([]string, 0, 2*len(values))
	for _, token := range sortedKeys(values) {
		pairs = append(pairs, token, values[token])
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// decodeWithToken reports whether a text is base64 with a token in it, and returns the decoded
// text.
func decodeWithToken[V any](text string, tokens map[string]V) (string, bool) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", false
	}
	for token := range tokens {
		if strings.Contains(string(raw), token) {
			return string(raw), true
		}
	}
	return "", false
}

// resourceTemplatePattern matches a reference (upstream: pkg/apis/core/v1beta1/constants/utils.go).
var resourceTemplatePattern = regexp.MustCompile(`\{\{\s*\.resources\.([a-zA-Z0-9]+)\.data\.([a-zA-Z0-9]+)\s*\}\}`)

// resourceValues are the values that a chart takes from resources.
type resourceValues struct {
	resources []gardencorev1.NamedResourceReference
	// checksums of the resources are part of tokens: a changed value changes checksums in the
	// chart.
	checksums map[string]string
}

// insertTokens replaces templates in values by tokens and returns the sources of the tokens. Each
// seed gives other tokens.
func (r resourceValues) insertTokens(values map[string]any, seed string) (map[string]any, map[string]FilledValue, error) {
	tokens := map[string]FilledValue{}
	var problems []error
	named := func(template string) string {
		found := resourceTemplatePattern.FindStringSubmatch(template)
		i := slices.IndexFunc(r.resources, func(one gardencorev1.NamedResourceReference) bool { return one.Name == found[1] })
		if i < 0 {
			problems = append(problems, fmt.Errorf("%s refers to the resource %q, which is not in spec.deployment.resources", template, found[1]))
			return template
		}
		from := FilledValue{r.resources[i].ResourceRef.Kind, r.resources[i].ResourceRef.Name, found[2]}
		sum := sha256.Sum256([]byte(strings.Join([]string{seed, from.Kind, from.Name, from.Key, r.checksums[ReferenceKey(from.Kind, from.Name)]}, "/")))
		token := "value-" + hex.EncodeToString(sum[:12])
		tokens[token] = from
		return token
	}
	var walk func(any) any
	walk = func(value any) any {
		switch v := value.(type) {
		case map[string]any:
			for key := range v {
				v[key] = walk(v[key])
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case string:
			return resourceTemplatePattern.ReplaceAllStringFunc(v, named)
		}
		return value
	}
	out := walk(runtime.DeepCopyJSON(values)).(map[string]any)
	return out, tokens, errors.Join(problems...)
}

// hasTemplates reports whether values refer to resources.
func hasTemplates(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if hasTemplates(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasTemplates)
	case string:
		return resourceTemplatePattern.MatchString(v)
	}
	return false
}

// objects renders a chart with tokens and marks the objects to fill in.
func (r resourceValues) objects(values map[string]any, chart func(map[string]any) ([]Object, error)) ([]Object, error) {
	if !hasTemplates(values) {
		return chart(values)
	}
	var rendered [2][]Object
	var tokens [2]map[string]FilledValue
	for i, seed := range []string{"first", "second"} {
		with, found, err := r.insertTokens(values, seed)
		if err != nil {
			return nil, err
		}
		if rendered[i], err = chart(with); err != nil {
			return nil, fmt.Errorf("with a placeholder for each value of spec.deployment.resources: %w", err)
		}
		tokens[i] = found
	}
	if err := checkTokenUse(rendered, tokens); err != nil {
		return nil, err
	}
	for _, o := range rendered[0] {
		if err := markFilled(o.Unstructured, tokens[0]); err != nil {
			return nil, err
		}
	}
	return rendered[0], nil
}

// checkTokenUse fails if a chart uses a token other than by writing it. It ignores annotations,
// which may contain checksums.
func checkTokenUse(rendered [2][]Object, tokens [2]map[string]FilledValue) error {
	other := map[string]string{} // tokens of the second render by tokens of the first
	for first, from := range tokens[0] {
		for second, same := range tokens[1] {
			if from == same {
				other[first] = second
			}
		}
	}
	const advice = "the chart may only copy a value of spec.deployment.resources, plain or in base64, because the value is known only at apply"
	if len(rendered[0]) != len(rendered[1]) {
		return fmt.Errorf("the chart renders different objects for another value: %s", advice)
	}
	for i, o := range rendered[0] {
		if at := firstDifference(FillValues(o.Unstructured, other).Object, rendered[1][i].Object, ""); at != "" {
			return fmt.Errorf("%s %s: %s is computed from a value of spec.deployment.resources: %s", o.GetKind(), o.GetName(), strings.TrimPrefix(at, "."), advice)
		}
	}
	return nil
}

// firstDifference finds the first path where values differ, except annotations; else "".
func firstDifference(a, b any, at string) string {
	if strings.HasSuffix(at, ".metadata.annotations") {
		return ""
	}
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	if isMap && areMaps {
		both := maps.Clone(x)
		maps.Copy(both, y)
		for _, key := range sortedKeys(both) {
			if found := firstDifference(x[key], y[key], at+"."+key); found != "" {
				return found
			}
		}
		return ""
	}
	p, isList := a.([]any)
	q, areLists := b.([]any)
	if isList && areLists && len(p) == len(q) {
		for i := range p {
			if found := firstDifference(p[i], q[i], fmt.Sprintf("%s[%d]", at, i)); found != "" {
				return found
			}
		}
		return ""
	}
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return at
}

// markFilled records the tokens in an object. Values of Secrets may only be in Secrets, where they
// are hidden.
func markFilled(obj *unstructured.Unstructured, tokens map[string]FilledValue) error {
	isSecret := obj.GetKind() == "Secret" && obj.GroupVersionKind().Group == ""
	used := map[string]string{}
	var problems []error
	var walk func(value any, at string)
	note := func(text, at string) {
		if decoded, is := decodeWithToken(text, tokens); is {
			text = decoded
		}
		for _, token := range sortedKeys(tokens) {
			if !strings.Contains(text, token) {
				continue
			}
			from := tokens[token]
			hidden := isSecret && (strings.HasPrefix(at, ".data.") || strings.HasPrefix(at, ".stringData."))
			switch {
			case strings.HasPrefix(at, ".metadata.") && !strings.HasPrefix(at, ".metadata.annotations."):
				problems = append(problems, fmt.Errorf("%s contains key %s of %s %s, which is known only at apply", at[1:], from.Key, from.Kind, from.Name))
			case from.Kind == "Secret" && !hidden:
				problems = append(problems, fmt.Errorf("%s contains key %s of Secret %s, where everyone can read it: the chart must write it into a Secret", at[1:], from.Key, from.Name))
			}
			used[token] = from.Kind + "/" + from.Name + "/" + from.Key
		}
	}
	walk = func(value any, at string) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				walk(v[key], at+"."+key)
			}
		case []any:
			for i, item := range v {
				walk(item, fmt.Sprintf("%s[%d]", at, i))
			}
		case string:
			note(v, at)
		}
	}
	walk(obj.Object, "")
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("%s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	if len(used) > 0 {
		raw, err := json.Marshal(used)
		if err != nil {
			return err
		}
		obj.SetAnnotations(mergeMaps(obj.GetAnnotations(), map[string]string{MarkFilledValues: string(raw)}))
	}
	return nil
}
