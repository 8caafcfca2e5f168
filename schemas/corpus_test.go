// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/hack/corpus"
)

// parseManifest parses the objects of a manifest.
func parseManifest(t testing.TB, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for _, text := range regexp.MustCompile(`(?m)^---.*$`).Split(string(data), -1) {
		var content map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &content))
		if content != nil {
			objects = append(objects, &unstructured.Unstructured{Object: content})
		}
	}
	return objects
}

func errorsOnly(violations []Violation) []Violation {
	var result []Violation
	for _, v := range violations {
		if v.Severity == SeverityError {
			result = append(result, v)
		}
	}
	return result
}

// TestCorpusVerdicts checks that verdicts equal upstream's, and that errors name the same field.
// TestGardenCorpus has the cases that need other objects.
func TestCorpusVerdicts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "cases", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		objects := parseManifest(t, data)
		in := Input{Object: objects[len(objects)-1]}
		if len(objects) > 1 {
			in.Old = objects[0]
		}
		require.True(t, IsKnown(in.Object.GroupVersionKind()), filepath.Base(file))
		if strings.Contains(string(data), "\n# needs: ") {
			continue
		}
		violations, err := Validate(t.Context(), []Input{in}, Options{})
		require.NoError(t, err, filepath.Base(file))
		if strings.Contains(string(data), "# expect: valid") {
			assert.Empty(t, errorsOnly(violations), filepath.Base(file))
			continue
		}
		field := regexp.MustCompile(`(?m)^# field: (.*)$`).FindStringSubmatch(string(data))[1]
		named := slices.ContainsFunc(violations, func(v Violation) bool { return v.Severity == SeverityError && v.Field == field })
		assert.True(t, named, "%s: upstream names %s, here: %v", filepath.Base(file), field, formatViolations(violations))
	}
}

// TestCorpusManifests checks that upstream's own manifests get upstream's verdict.
func TestCorpusManifests(t *testing.T) {
	folder := corpus.Dir(t)
	index, err := os.ReadFile(filepath.Join(folder, "valid-index.tsv"))
	require.NoError(t, err)
	checked := 0
	for _, line := range strings.Split(strings.TrimSpace(string(index)), "\n")[1:] {
		columns := strings.Split(line, "\t")
		name, role, verdict := columns[0], columns[1], columns[3]
		kind, wanted, found := strings.Cut(verdict, ": ")
		if !found && role != "manifest" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, "valid", name))
		require.NoError(t, err)
		for _, object := range parseManifest(t, data) {
			if found && object.GetKind() != kind || !IsKnown(object.GroupVersionKind()) {
				continue
			}
			if !found {
				wanted = "ok" // upstream cannot check this kind in a file
			}
			checked++
			t.Run(name, func(t *testing.T) {
				violations, err := Validate(t.Context(), []Input{{Object: object}}, Options{})
				require.NoError(t, err)
				assert.Equal(t, parseVerdict(wanted), errorTypesByField(violations), "%v", formatViolations(violations))
			})
		}
	}
	assert.Greater(t, checked, 50)
}

// parseVerdict parses "spec.a FieldValueRequired; spec.b FieldValueInvalid".
func parseVerdict(verdict string) map[string]string {
	result := map[string]string{}
	if verdict == "ok" {
		return result
	}
	for _, part := range strings.Split(verdict, "; ") {
		field, typ, _ := strings.Cut(part, " ")
		result[field] = strings.TrimPrefix(typ, "FieldValue")
	}
	return result
}

// errorTypesByField returns all errors except types of opaque provider configuration, which
// upstream does not read.
func errorTypesByField(violations []Violation) map[string]string {
	result := map[string]string{}
	for _, v := range errorsOnly(violations) {
		if v.Type == TypeTypeInvalid && strings.HasSuffix(v.Field, "Config") {
			continue
		}
		result[v.Field] = string(v.Type)
	}
	return result
}
