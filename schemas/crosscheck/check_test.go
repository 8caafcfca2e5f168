// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// testTime is the time of all tests.
var testTime = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func loadGoodLandscape(t testing.TB) []*unstructured.Unstructured {
	data, err := os.ReadFile("testdata/good.yaml")
	require.NoError(t, err)
	var out []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out
		} else {
			require.NoError(t, err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// ruleTest is a case of testdata/tests.yaml: changes of the good landscape, and the expected
// findings.
type ruleTest struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
	// Change is merged into the object of that kind and name: lists are replaced, null deletes. Add
	// copies the object of the kind and name in Like. Remove removes all objects of the kinds.
	Change   []map[string]any `json:"change"`
	Add      []addition       `json:"add"`
	Remove   []string         `json:"remove"`
	Old      map[string]any   `json:"old"`
	External []External       `json:"external"`
	Want     []string         `json:"want"`
}

type addition struct {
	Like   string         `json:"like"`
	Object map[string]any `json:"object"`
}

func mergeObjects(below, above map[string]any) map[string]any {
	out := maps.Clone(below)
	for k, v := range above {
		if v == nil {
			delete(out, k)
			continue
		}
		m, isMap := v.(map[string]any)
		under, wasMap := out[k].(map[string]any)
		if isMap && wasMap {
			v = mergeObjects(under, m)
		}
		out[k] = v
	}
	return out
}

func (e ruleTest) buildInputs(t testing.TB) []schemas.Input {
	find := func(kind string) int {
		return slices.IndexFunc(e.buildObjects(t), func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })
	}
	objects := e.buildObjects(t)
	inputs := make([]schemas.Input, len(objects))
	for i, o := range objects {
		inputs[i].Object = o
	}
	for _, change := range e.Change {
		i := find(change["kind"].(string))
		require.GreaterOrEqual(t, i, 0, change["kind"])
		inputs[i].Object = &unstructured.Unstructured{Object: mergeObjects(inputs[i].Object.Object, change)}
		if e.Old != nil {
			inputs[i].Old = &unstructured.Unstructured{Object: mergeObjects(inputs[i].Object.Object, e.Old)}
		}
	}
	for _, add := range e.Add {
		o := add.Object
		if add.Like != "" {
			o = mergeObjects(inputs[find(add.Like)].Object.Object, o)
		}
		inputs = append(inputs, schemas.Input{Object: &unstructured.Unstructured{Object: o}})
	}
	return inputs
}

func (e ruleTest) buildObjects(t testing.TB) []*unstructured.Unstructured {
	return slices.DeleteFunc(loadGoodLandscape(t), func(o *unstructured.Unstructured) bool { return slices.Contains(e.Remove, o.GetKind()) })
}

// TestEveryRule checks that the good landscape passes and that each rule has a failing entry.
func TestEveryRule(t *testing.T) {
	data, err := os.ReadFile("testdata/tests.yaml")
	require.NoError(t, err)
	var entries []ruleTest
	require.NoError(t, sigsyaml.UnmarshalStrict(data, &entries))
	assert.Empty(t, Check(ruleTest{}.buildInputs(t), Options{Now: testTime}), "the good landscape")

	fields := map[string][]string{}
	for _, rule := range allRules() {
		fields[rule.ID] = append(fields[rule.ID], rule.Fields...)
	}
	broken := map[string]bool{}
	for i, e := range entries {
		t.Run(fmt.Sprintf("%d %s %s", i, e.Rule, e.Why), func(t *testing.T) {
			got := []string{}
			for _, v := range Check(e.buildInputs(t), Options{Now: testTime, External: e.External}) {
				assert.NotEmpty(t, v.Message)
				assert.True(t, isAtOrBelow(v.Field, fields[v.Rule]), "%s has a finding at %s, which is below none of its fields %q", v.Rule, v.Field, fields[v.Rule])
				if v.Rule == e.Rule {
					got = append(got, fmt.Sprintf("%s %s: %s %s", v.Kind, v.Name, v.Field, v.Type))
				}
			}
			assert.Equal(t, e.Want, got)
		})
		if len(e.Want) > 0 {
			broken[e.Rule] = true
		}
	}
	kinds, err := schemas.StructuralKinds()
	require.NoError(t, err)
	for _, rule := range allRules() {
		assert.NotEmpty(t, rule.Fields, rule.ID)
		for _, field := range rule.Fields {
			assert.True(t, slices.ContainsFunc(kinds, func(k *structure.Kind) bool {
				return structure.RulesName(k.GVK) == rule.Kind && k.Root.FieldNode(fieldpath.Parse(field)) != nil
			}), "%s is about %s, which its kind does not have", rule.ID, field)
		}
		if _, list := slices.BinarySearch(referenceRuleIDs, rule.ID); !list {
			assert.True(t, broken[rule.ID], "no entry breaks %s", rule.ID)
		}
		for what, text := range map[string]string{"title": rule.Title, "doc": rule.Doc, "source": rule.Source} {
			assert.NotEmpty(t, text, "%s of %s", what, rule.ID)
		}
	}
}

// referenceRuleIDs are rules from the table of references; TestReferenceFields breaks each of them.
var referenceRuleIDs = []string{"backupbucket/references", "backupentry/references", "bastion/references", "controllerdeployment/references",
	"controllerinstallation/references", "controllerregistration/references", "credentialsbinding/references", "extension/references",
	"garden/references", "gardenlet/references", "managedseed/references", "namespacedcloudprofile/references", "secretbinding/references",
	"seed/references", "shoot/references"}

// isAtOrBelow reports whether the path of a finding is at or below one of a rule's fields.
func isAtOrBelow(path string, fields []string) bool {
	path = regexp.MustCompile(`\[\d+\]`).ReplaceAllString(path, "")
	return slices.ContainsFunc(fields, func(field string) bool {
		rest, ok := strings.CutPrefix(path, field)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
