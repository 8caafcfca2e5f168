// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Secrets that a cluster generates have equal symbolic names on both sides of a comparison. If a
// change requests another one, its name and all references to it change in the cluster. The
// comparison must show that.

// regeneratedMark replaces symbolicMark for a secret that the change regenerates.
const regeneratedMark = "YYYYYYYY"

// storageFields are the fields of a request that affect the storage of a secret, not its content
// (package secrets, Config).
var storageFields = []string{
	"rotation", "persist", "labels", "ignoreOldSecrets", "ignoreOldSecretsAfter", "useCurrentCA", "useOldCA", "renewAfterValidityPercentage",
}

// requestReferences are the fields of a request that name another one.
var requestReferences = []string{"signingCA", "ca", "clientCertificate", "key"}

// regeneratedSecrets lists the secrets that both sides request differently, and the secrets derived
// from them.
func regeneratedSecrets(old, new map[string]json.RawMessage) []string {
	content := func(request json.RawMessage) map[string]any {
		var fields map[string]any
		if json.Unmarshal(request, &fields) != nil {
			return nil
		}
		for _, f := range storageFields {
			delete(fields, f)
		}
		return fields
	}
	var out []string
	requests := map[string]map[string]any{}
	for _, name := range sortedKeys(new) {
		requests[name] = content(new[name])
		if before, both := old[name]; both && !reflect.DeepEqual(content(before), requests[name]) {
			out = append(out, name)
		}
	}
	for before := -1; before != len(out); {
		before = len(out)
		for _, name := range sortedKeys(requests) {
			depends := slices.ContainsFunc(requestReferences, func(field string) bool {
				of, _ := requests[name][field].(string)
				return slices.Contains(out, of)
			})
			if _, both := old[name]; both && depends && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// markRegenerated marks secrets in the bundles of an owner as regenerated. Unchanged objects are
// not copied.
func markRegenerated(bundles []Bundle, facts Facts, names []string) {
	if len(names) == 0 {
		return
	}
	var replace [][2]string
	for name, fact := range facts.secretFacts(names) {
		replace = append(replace, [2]string{fact.Name, name + "-" + regeneratedMark})
		replace = append(replace, [2]string{fact.Checksum, name + "-checksum-" + regeneratedMark}, [2]string{fact.Bundle, name + "-bundle-" + regeneratedMark})
		replace = append(replace, [2]string{fact.CABundle, base64.StdEncoding.EncodeToString([]byte(symbolicCAWords + name + " " + regeneratedMark))})
	}
	replace = slices.DeleteFunc(replace, func(pair [2]string) bool { return pair[0] == "" })
	rename := func(text string) string {
		for _, pair := range replace {
			text = replaceMentions(text, pair[0], pair[1])
		}
		return text
	}
	for i := range bundles {
		touched := false
		objects := slices.Clone(bundles[i].Objects)
		for k, o := range objects {
			if !hasRenamedText(o.Object, rename) {
				continue
			}
			objects[k].Unstructured = o.DeepCopy()
			objects[k].Object = mapTexts(runtime.DeepCopyJSON(o.Object), rename).(map[string]any)
			touched = true
		}
		if touched {
			bundles[i].Objects, bundles[i].Digest = objects, Digest{}
		}
	}
}

// replaceMentions is strings.ReplaceAll for the matches of mentions.
func replaceMentions(text, value, with string) string {
	if !hasSymbol(text, value) {
		return text
	}
	var out strings.Builder
	for at := 0; ; {
		i := strings.Index(text[at:], value)
		if i < 0 {
			out.WriteString(text[at:])
			return out.String()
		}
		end := at + i + len(value)
		if hasSymbol(text[max(0, at+i-1):end], value) {
			out.WriteString(text[at:at+i] + with)
		} else {
			out.WriteString(text[at:end])
		}
		at = end
	}
}

func hasRenamedText(value any, rename func(string) string) bool {
	found := false
	mapTexts(value, func(text string) string {
		found = found || rename(text) != text
		return text
	})
	return found
}

// mapTexts changes all texts of a value in place.
func mapTexts(value any, change func(string) string) any {
	switch v := value.(type) {
	case string:
		return change(v)
	case map[string]any:
		for key, inner := range v {
			if to := mapTexts(inner, change); !isSameText(inner, to) {
				v[key] = to
			}
		}
	case []any:
		for i, inner := range v {
			if to := mapTexts(inner, change); !isSameText(inner, to) {
				v[i] = to
			}
		}
	}
	return value
}

// isSameText avoids writes to objects that do not change.
func isSameText(a, b any) bool {
	x, text := a.(string)
	if !text {
		return true
	}
	return x == b
}
