// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// delta is the difference between two sets of objects: facts, each a path in an object and its
// value.
type delta struct {
	// Added are complete objects.
	Added map[string]map[string]string `json:"added,omitempty"`
	// Changed are fields with another value, or added ones.
	Changed map[string]map[string]string `json:"changed,omitempty"`
	// Gone are removed fields, Removed are removed objects.
	Gone    map[string][]string `json:"gone,omitempty"`
	Removed []string            `json:"removed,omitempty"`
}

func deltaOf(before, after map[string]any) delta {
	out := delta{Added: map[string]map[string]string{}, Changed: map[string]map[string]string{}, Gone: map[string][]string{}}
	for key, object := range after {
		old, had := before[key]
		changed, gone := map[string]string{}, []string(nil)
		reportDifferences("", old, object, func(path, value string, there bool) {
			if there {
				changed[path] = value
			} else {
				gone = append(gone, path)
			}
		})
		switch {
		case !had:
			out.Added[key] = changed
		case len(changed) > 0:
			out.Changed[key] = changed
		}
		if len(gone) > 0 {
			slices.Sort(gone)
			out.Gone[key] = gone
		}
	}
	for key := range before {
		if _, has := after[key]; !has {
			out.Removed = append(out.Removed, key)
		}
	}
	slices.Sort(out.Removed)
	return out
}

// fact identifies a fact of a delta.
type fact struct{ object, path string }

// facts returns all facts of a delta. A removed field has no value.
func (d delta) facts() map[fact]string {
	out := map[fact]string{}
	for key, fields := range d.Added {
		out[fact{key, ""}] = "has it in addition"
		for path, value := range fields {
			out[fact{key, path}] = value
		}
	}
	for key, fields := range d.Changed {
		for path, value := range fields {
			out[fact{key, path}] = value
		}
	}
	for key, paths := range d.Gone {
		for _, path := range paths {
			out[fact{key, path}] = "has it no more"
		}
	}
	for _, key := range d.Removed {
		out[fact{key, ""}] = "has it no more"
	}
	return out
}

// compareDeltas returns the number of facts and the differences. A missing object is reported once.
func compareDeltas(want, got map[fact]string) (int, []foundDifference) {
	all := map[fact]bool{}
	for f := range want {
		all[f] = true
	}
	for f := range got {
		all[f] = true
	}
	var out []foundDifference
	for f := range all {
		w, inWant := want[f]
		g, inGot := got[f]
		if w == g && inWant == inGot {
			continue
		}
		if whole := (fact{f.object, ""}); f != whole && (want[whole] != got[whole]) {
			continue
		}
		if !inWant {
			w = "has what the base has"
		}
		if !inGot {
			g = "have what the base has"
		}
		out = append(out, foundDifference{f.object, f.path, w, g})
	}
	slices.SortFunc(out, func(a, b foundDifference) int { return strings.Compare(a.object+a.path, b.object+b.path) })
	return len(all), out
}

// reportDifferences reports the leaves with another value; removed parts are reported as a whole.
func reportDifferences(path string, before, after any, report func(path, value string, there bool)) {
	switch a := after.(type) {
	case nil:
		if before != nil {
			report(path, "", false)
		}
	case map[string]any:
		b, _ := before.(map[string]any)
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			at := path + "." + key
			if strings.HasPrefix(key, "[") {
				at = path + key
			}
			reportDifferences(at, b[key], a[key], report)
		}
	case []any:
		b, _ := before.([]any)
		if len(b) > 0 && len(b) != len(a) {
			reportDifferences(path, countItems(b), countItems(a), report)
			return
		}
		for i := range a {
			var old any
			if i < len(b) {
				old = b[i]
			}
			reportDifferences(fmt.Sprintf("%s[%d]", path, i), old, a[i], report)
		}
	default:
		if before != after {
			report(path, fmt.Sprint(after), true)
		}
	}
}

// countItems returns how often each item of a list occurs.
func countItems(list []any) map[string]any {
	times := map[string]int{}
	for _, item := range list {
		raw, _ := json.Marshal(item)
		times["["+string(raw)+"]"]++
	}
	out := map[string]any{}
	for item, n := range times {
		out[item] = fmt.Sprintf("%d times", n)
	}
	return out
}

var (
	// nameHashes are the hashes in names of objects, anywhere.
	nameHashes = regexp.MustCompile(`-(?:[0-9a-f]{8}|X{8})(?:-[0-9a-f]{5})?(\z|[^0-9a-zA-Z-])`)
	sums       = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
)

// factsOf converts an object so that equal facts have equal paths: list items and flags by name,
// documents in texts as fields. It omits unstructured and user-defined texts: scripts, dashboards,
// rules, schemas, secrets. It also omits metadata that changes over time.
func factsOf(o *unstructured.Unstructured) any {
	o = o.DeepCopy()
	for _, field := range []string{"creationTimestamp", "generation", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	for _, annotation := range []string{"gardener.cloud/operation", "gardener.cloud/timestamp"} {
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", annotation)
	}
	delete(o.Object, "status")
	switch o.GetKind() {
	case "CustomResourceDefinition", "PrometheusRule":
		delete(o.Object, "spec")
		o.SetAnnotations(nil)
	case "Secret":
		o.Object["data"] = redactValues(o.Object["data"], o.Object["stringData"])
		delete(o.Object, "stringData")
	case "ConfigMap":
		if strings.Contains(o.GetName(), "dashboards") {
			o.Object["data"] = redactValues(o.Object["data"])
		}
	}
	return canonicalValue(keyLists(o.Object, false))
}

// redactValues returns the keys without their values.
func redactValues(values ...any) any {
	out := map[string]any{}
	for _, value := range values {
		fields, _ := value.(map[string]any)
		for key := range fields {
			out[key] = "REDACTED"
		}
	}
	return out
}

// keyLists replaces lists by maps; ordered preserves their order, as in documents of programs.
func keyLists(value any, ordered bool) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, field := range v {
			if referenceKey.MatchString(key) {
				key = "reference " + withoutHashes(fmt.Sprint(field))
			}
			out[withoutHashes(key)] = keyLists(field, ordered)
		}
		return out
	case []any:
		if out := itemsByName(v, ordered); out != nil {
			return out
		}
		if out := itemsByText(v); out != nil {
			return out
		}
		out := make([]any, 0, len(v))
		for _, item := range v {
			out = append(out, keyLists(item, ordered))
		}
		return out
	case string:
		return textFacts(v)
	default:
		return v
	}
}

// itemsByName converts items that all have a unique name.
func itemsByName(list []any, ordered bool) map[string]any {
	out := map[string]any{}
	var names []string
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, is := fields["name"].(string)
		name = withoutHashes(name)
		if _, twice := out["["+name+"]"]; !is || twice {
			return nil
		}
		out["["+name+"]"] = keyLists(fields, ordered)
		names = append(names, name)
	}
	if ordered && len(names) > 1 {
		out["[order]"] = strings.Join(names, ", ")
	}
	return out
}

// itemsByText converts texts; flags have a value.
func itemsByText(list []any) map[string]any {
	out := map[string]any{}
	for _, item := range list {
		text, is := item.(string)
		if !is {
			return nil
		}
		flag, value, has := strings.Cut(text, "=")
		if !has || !strings.HasPrefix(flag, "-") {
			flag, value = text, "listed"
		}
		if strings.Contains(flag, "\n") {
			flag = "TEXT"
		}
		key := "[" + fmt.Sprint(textFacts(flag)) + "]"
		if before, twice := out[key]; twice {
			value = fmt.Sprintf("%s and %s", before, value)
		}
		out[key] = withoutHashes(value)
	}
	return out
}

// longestText is the maximum length of a document whose fields are compared.
const longestText = 10_000

func textFacts(text string) any {
	if strings.Contains(text, "\n") || strings.HasPrefix(text, "{") {
		var document any
		if len(text) <= longestText && yaml.Unmarshal([]byte(text), &document) == nil && isTree(document) {
			return keyLists(document, true)
		}
		if settings := settingsIn(text); settings != nil {
			return settings
		}
	}
	switch {
	case strings.HasPrefix(text, "Bearer "):
		return "Bearer REDACTED"
	case strings.HasPrefix(text, "-----BEGIN ") || strings.HasPrefix(text, "LS0tLS1CRUdJTi"):
		return "REDACTED"
	case strings.Contains(text, "\n"):
		return "TEXT"
	}
	return withoutHashes(text)
}

func withoutHashes(text string) string {
	return sums.ReplaceAllString(nameHashes.ReplaceAllString(text, "-HASH$1"), "SHA256")
}

// setting is a line of configuration for programs such as Fluent Bit: a key, then its value.
var setting = regexp.MustCompile(`^([A-Za-z_]+)\s+(\S.*)$`)

// settingsIn are the lines of a text that consists only of settings.
func settingsIn(text string) map[string]any {
	out := map[string]any{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		parts := setting.FindStringSubmatch(line)
		if parts == nil {
			return nil
		}
		out[parts[1]] = withoutHashes(parts[2])
	}
	return out
}

func isTree(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}
