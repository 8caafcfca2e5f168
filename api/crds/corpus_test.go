// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// newTypedObject returns an empty object of one of our kinds.
func newTypedObject(t *testing.T, gvk schema.GroupVersionKind) runtime.Object {
	t.Helper()
	object, err := newScheme(t).New(gvk)
	require.NoError(t, err)
	return object
}

func newValidators(t *testing.T) map[schema.GroupVersionKind]*validator {
	t.Helper()
	byKind := map[schema.GroupVersionKind]*validator{}
	for _, crd := range crds.All() {
		for _, version := range crd.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
			byKind[gvk] = newVersionValidator(t, version)
		}
	}
	return byKind
}

var documentSeparator = regexp.MustCompile(`(?m)^---.*$`)

type document struct {
	kind schema.GroupVersionKind
	raw  []byte
}

// decodeDocuments returns the documents of our kinds.
func decodeDocuments(t *testing.T, data []byte) []document {
	t.Helper()
	var docs []document
	scheme := newScheme(t)
	for _, raw := range documentSeparator.Split(string(data), -1) {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(raw), &object); err != nil || object["kind"] == nil {
			continue
		}
		gvk := schema.FromAPIVersionAndKind(fmt.Sprint(object["apiVersion"]), fmt.Sprint(object["kind"]))
		if scheme.Recognizes(gvk) {
			docs = append(docs, document{kind: gvk, raw: []byte(raw)})
		}
	}
	return docs
}

func (d document) decode(t *testing.T) map[string]any {
	t.Helper()
	object := map[string]any{}
	data, err := yaml.YAMLToJSON(d.raw)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, &object))
	return runtime.DeepCopyJSON(normalizeNumbers(object).(map[string]any))
}

// normalizeNumbers turns float64 without fraction into int64, as the API server's JSON decoder
// does.
func normalizeNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = normalizeNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = normalizeNumbers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

// TestUpstreamManifests checks that upstream's manifests decode strictly. Manifests that pass
// upstream's static check must also pass our schema; no other manifest fails because of an unknown
// field.
func TestUpstreamManifests(t *testing.T) {
	dir := corpus.Dir(t)
	byKind := newValidators(t)
	index, err := os.ReadFile(filepath.Join(dir, "valid-index.tsv"))
	require.NoError(t, err)

	checked := 0
	scanner := bufio.NewScanner(bytes.NewReader(index))
	scanner.Scan() // header
	for scanner.Scan() {
		columns := strings.Split(scanner.Text(), "\t")
		require.Len(t, columns, 4, scanner.Text())
		path, role, verdict := columns[0], columns[1], columns[3]
		if role != "manifest" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, "valid", path))
		require.NoError(t, err)
		for _, doc := range decodeDocuments(t, data) {
			t.Run(path, func(t *testing.T) {
				require.NoError(t, yaml.UnmarshalStrict(doc.raw, newTypedObject(t, doc.kind)))
				object := doc.decode(t)
				assert.Empty(t, byKind[doc.kind].pruneAndDefault(object), "unknown fields")
				errs := byKind[doc.kind].validate(object, nil)
				if verdict == "-" || strings.Contains(verdict, doc.kind.Kind+": ok") {
					assert.Empty(t, errs)
					return
				}
				assertReportedUpstream(t, errs, verdict)
			})
			checked++
		}
	}
	require.NoError(t, scanner.Err())
	assert.GreaterOrEqual(t, checked, 50, "manifests of our kinds")
}

// names reports whether the error is about one of the fields. A duplicate in a list of type map is
// reported for the element here, for its key by upstream.
func names(fields []string, err *field.Error) bool {
	for _, f := range fields {
		if f == err.Field || (err.Type == field.ErrorTypeDuplicate && strings.HasPrefix(f, err.Field+".")) {
			return true
		}
	}
	return false
}

// assertReportedUpstream checks that each schema error is about a field that upstream's verdict
// names.
func assertReportedUpstream(t *testing.T, errs field.ErrorList, verdict string) {
	t.Helper()
	for _, err := range errs {
		assert.Contains(t, verdict, err.Field+" ", "upstream does not complain about it: %v", err)
	}
}

type caseHeader map[string]string

func readCaseHeader(data []byte) caseHeader {
	values := caseHeader{}
	for _, line := range strings.Split(string(data), "\n") {
		if !strings.HasPrefix(line, "# ") {
			break
		}
		if key, value, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": "); ok {
			values[key] = value
		}
	}
	return values
}

// TestUpstreamValidationCases checks that our schema is nowhere stricter than upstream's
// validation. Valid cases must pass; in invalid cases, each schema error must be about a field that
// upstream reports, too.
func TestUpstreamValidationCases(t *testing.T) {
	dir := corpus.Dir(t)
	byKind := newValidators(t)
	files, err := filepath.Glob(filepath.Join(dir, "cases", "*.yaml"))
	require.NoError(t, err)

	valid, found := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		docs, head := decodeDocuments(t, data), readCaseHeader(data)
		if len(docs) == 0 {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			objects := make([]map[string]any, 0, len(docs))
			for _, doc := range docs {
				require.NoError(t, yaml.UnmarshalStrict(doc.raw, newTypedObject(t, doc.kind)), "%s", head["why"])
				object := doc.decode(t)
				assert.Empty(t, byKind[doc.kind].pruneAndDefault(object), "unknown fields")
				objects = append(objects, object)
			}
			var old map[string]any
			if head["op"] == "update" {
				require.Len(t, objects, 2)
				old = objects[0]
			}
			errs := byKind[docs[0].kind].validate(objects[len(objects)-1], old)
			if head["expect"] == "valid" {
				assert.Empty(t, errs, head["why"])
				return
			}
			recorded := append(strings.Split(head["also"], " | "), head["field"])
			for _, err := range errs {
				assert.True(t, names(recorded, err), "upstream does not complain about it (%s): %v", head["why"], err)
				found++
			}
		})
		if head["expect"] == "valid" {
			valid++
		}
	}
	assert.GreaterOrEqual(t, valid, 40, "valid cases")
	assert.Positive(t, found, "the schema alone finds some of the recorded errors")
}
