// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// validObject returns an object of a kind that satisfies all rules: from rules/KIND/good.yaml, or
// from the demonstration landscape. The kind is named as structure.RulesName does.
func validObject(t testing.TB, kind string) *unstructured.Unstructured {
	t.Helper()
	if data, err := os.ReadFile(filepath.Join("rules", strings.ToLower(kind), "good.yaml")); err == nil {
		objects := parseManifest(t, data)
		require.Len(t, objects, 1, kind)
		require.Equal(t, kind, structure.RulesName(objects[0].GroupVersionKind()))
		return objects[0]
	}
	if kind == "Secret" || kind == "ConfigMap" {
		return parseObject(t, "apiVersion: v1\nkind: "+kind+"\nmetadata: {name: a, namespace: garden}\ndata: {a: aGk=}")
	}
	file := map[string]string{
		"Garden": "garden/garden.yaml", "CloudProfile": "gardenconfig/cloudprofile.yaml", "Seed": "seeds/local.yaml",
		"Project": "projects/local/project.yaml", "Shoot": "projects/local/shoot.yaml", "Landscape": "landscape.yaml",
	}[kind]
	require.NotEmpty(t, file, "there is no good object of %s: add rules/%s/good.yaml", kind, strings.ToLower(kind))
	data, err := os.ReadFile(filepath.Join("..", "landscapes", "local", filepath.FromSlash(file)))
	require.NoError(t, err)
	for _, object := range parseManifest(t, data) {
		switch {
		case object.GetKind() != kind:
		case kind == "Seed": // the demonstration has no backup
			return patchObject(t, object, "spec: {backup: {provider: local, region: local, credentialsRef: {apiVersion: v1, kind: Secret, name: backup-local, namespace: garden}}}")
		default:
			return object
		}
	}
	require.Fail(t, "no object of kind "+kind)
	return nil
}

// patchObject applies YAML to an object: maps are merged, lists replaced, null deletes.
func patchObject(t testing.TB, object *unstructured.Unstructured, over string) *unstructured.Unstructured {
	t.Helper()
	var patch map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(over), &patch))
	return mergeObject(object, patch)
}

func mergeObject(object *unstructured.Unstructured, over map[string]any) *unstructured.Unstructured {
	result := object.DeepCopy()
	mergeInto(result.Object, over)
	return result
}

func mergeInto(base, over map[string]any) {
	for name, value := range over {
		before, wasMap := base[name].(map[string]any)
		after, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(base, name)
		case wasMap && isMap:
			mergeInto(before, after)
		default:
			base[name] = value
		}
	}
}

// ruleTest is an entry of rules/KIND/tests.yaml.
type ruleTest struct {
	// Rule is the id of the tested rule; findings of other rules are ignored.
	Rule string `json:"rule"`
	// Description describes the entry if the rule has several.
	Description string `json:"why"`
	// Kind is the kind of the object if the folder does not determine it.
	Kind string `json:"kind"`
	// Object is applied to the good object of the kind: maps are merged, lists replaced, null
	// deletes.
	Object map[string]any `json:"object"`
	// Old makes it an update: the object before, also applied to the good one.
	Old map[string]any `json:"old"`
	// LandscapeObjects are further objects of the landscape, besides the good ones. Alone omits the
	// landscape.
	LandscapeObjects []map[string]any `json:"around"`
	WithoutLandscape bool             `json:"alone"`
	// Want lists the findings, "FIELD TYPE", sorted; it is empty if the object satisfies the rule.
	Want []string `json:"want"`
}

func ruleTests(t *testing.T) []ruleTest {
	files, err := filepath.Glob(filepath.Join("rules", "*", "tests.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []ruleTest
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var tests []ruleTest
		require.NoError(t, yaml.UnmarshalStrict(data, &tests), file)
		folder := filepath.Base(filepath.Dir(file))
		for i := range tests {
			if tests[i].Kind == "" {
				tests[i].Kind = kindOfFolder(t, folder)
			}
		}
		all = append(all, tests...)
	}
	return all
}

func kindOfFolder(t *testing.T, folder string) string {
	for gvk := range kindsWithSchema(t) {
		if name := structure.RulesName(gvk); strings.ToLower(name) == folder {
			return name
		}
	}
	require.Fail(t, "rules/"+folder+"/tests.yaml: name the kind of every entry")
	return ""
}

// kindsWithSchema returns the kinds with a schema.
func kindsWithSchema(t *testing.T) map[schema.GroupVersionKind]*structure.Kind {
	s, err := embeddedSources()
	require.NoError(t, err)
	kinds := map[schema.GroupVersionKind]*structure.Kind{}
	for _, kind := range allKinds(t, s) {
		kinds[kind.GVK] = kind
	}
	return kinds
}

func allKinds(t testing.TB, s *sources) []*structure.Kind {
	kinds, err := s.kinds.all()
	require.NoError(t, err)
	return kinds
}

// TestRules breaks one rule after the other in an object that satisfies them all. Each rule needs
// an object that breaks it and an object that satisfies it: the good one, or an entry without
// findings.
func TestRules(t *testing.T) {
	around := []*unstructured.Unstructured{validObject(t, "CloudProfile"), validObject(t, "Seed"), validObject(t, "Project"), validObject(t, "Garden")}
	rules, err := Rules()
	require.NoError(t, err)
	fields := map[string][]string{}
	for _, rule := range rules {
		fields[rule.ID] = rule.Fields
	}
	classes, changes := map[string]RuleClass{}, map[string]bool{}
	for _, rule := range rules {
		classes[rule.ID] = rule.Class
	}
	broken := map[string]bool{}
	for i, test := range ruleTests(t) {
		broken[test.Rule] = broken[test.Rule] || len(test.Want) > 0
		t.Run(fmt.Sprintf("%03d %s %s", i, test.Rule, test.Description), func(t *testing.T) {
			in := Input{Object: mergeObject(validObject(t, test.Kind), test.Object), Positions: pathPositioner{}}
			if test.Old != nil {
				in.Old = mergeObject(validObject(t, test.Kind), test.Old)
			}
			surroundings := &LandscapeObjects{Objects: around}
			for _, object := range test.LandscapeObjects {
				surroundings.Objects = append(slices.Clip(surroundings.Objects), &unstructured.Unstructured{Object: object})
			}
			if test.WithoutLandscape {
				surroundings = nil
			}
			violations, err := Validate(t.Context(), []Input{in}, Options{Landscape: surroundings})
			require.NoError(t, err)
			found := []string{}
			for _, v := range violations {
				assert.True(t, isBelowFields(v.File, strings.Split(v.Rule, "/")[0], fields[v.Rule]), "%s has a finding at %s, which is below none of its fields %q", v.Rule, v.File, fields[v.Rule])
				if v.Rule == test.Rule {
					found = append(found, v.Field+" "+string(v.Type))
				}
			}
			slices.Sort(found)
			assert.Equal(t, append([]string{}, test.Want...), found, "%v", formatViolations(violations))
			if in.Old == nil {
				return
			}
			// Without the old object, a static rule has the same findings. A rule of changes has
			// other findings in at least one entry.
			in.Old = nil
			created, err := Validate(t.Context(), []Input{in}, Options{Landscape: surroundings})
			require.NoError(t, err)
			ofRule := func(all []Violation) []string {
				return formatViolations(slices.DeleteFunc(slices.Clone(all), func(v Violation) bool { return v.Rule != test.Rule }))
			}
			differs := !slices.Equal(ofRule(violations), ofRule(created))
			changes[test.Rule] = changes[test.Rule] || differs
			if classes[test.Rule] == ClassStatic {
				assert.False(t, differs, "%s is of class static, and finds something else in a new object", test.Rule)
			}
		})
	}
	ids := map[string]bool{}
	for _, rule := range rules {
		ids[rule.ID] = true
		if !slices.Contains([]string{RuleStructure, ruleEmptyValue, ruleExtensionConfig, RuleDeletionConfirm, ruleGardenNamespace}, rule.ID) {
			assert.True(t, changes[rule.ID] || rule.Class != ClassChange, "the rule %s is of class change, and no entry shows that it reads the object before", rule.ID)
			assert.True(t, broken[rule.ID], "the rule %s has no entry that breaks it in rules/%s/tests.yaml", rule.ID, strings.Split(rule.ID, "/")[0])
		}
		assert.NotEmpty(t, rule.Title+rule.Doc+rule.Source)
		assert.NotEmpty(t, rule.Fields, rule.ID)
		if rule.Language == "base" {
			continue
		}
		source, err := os.ReadFile(filepath.FromSlash(strings.TrimPrefix(rule.File, "schemas/")))
		require.NoError(t, err, "the file of %s", rule.ID)
		_, name, _ := strings.Cut(rule.ID, "/")
		assert.Contains(t, string(source), name+`"`, "%s is not written in %s", rule.ID, rule.File)
		for _, field := range rule.Fields {
			assert.True(t, hasRuleField(t, rule, field), "the rule %s is about %s, which its kind does not have", rule.ID, field)
		}
		assert.True(t, strings.HasPrefix(rule.ID, strings.TrimSuffix(strings.ToLower(rule.Kind), ".*")+"/") || rule.Kind == "*", rule.ID)
	}
	for id := range broken {
		assert.True(t, ids[id], "a tests.yaml speaks of the rule %s, which there is not", id)
	}
}

// TestUnchangedObjectsHaveNoMoreFindings checks the assumption of isCleanWhenNew with the objects
// that break each rule.
func TestUnchangedObjectsHaveNoMoreFindings(t *testing.T) {
	around := []*unstructured.Unstructured{validObject(t, "CloudProfile"), validObject(t, "Seed"), validObject(t, "Project"), validObject(t, "Garden")}
	checker := func(objects []*unstructured.Unstructured, cache *Cache) *Checker {
		c, err := NewChecker(Options{Landscape: &LandscapeObjects{Objects: objects}, Cache: cache})
		require.NoError(t, err)
		return c
	}
	cache := NewCache(1000)
	alone, knowing := checker(around, nil), checker(around, cache)
	fewer := 0
	for i, test := range ruleTests(t) {
		alone, knowing := alone, knowing
		if len(test.LandscapeObjects) > 0 {
			objects := slices.Clip(around)
			for _, object := range test.LandscapeObjects {
				objects = append(objects, &unstructured.Unstructured{Object: object})
			}
			alone, knowing = checker(objects, nil), checker(objects, cache)
		}
		find := func(c *Checker, in Input) []Violation {
			found, err := c.Check(in)
			require.NoError(t, err)
			return found
		}
		object := mergeObject(validObject(t, test.Kind), test.Object)
		asNew := find(knowing, Input{Object: object})
		still := find(alone, Input{Object: object, Old: object})
		for _, v := range still {
			assert.Contains(t, asNew, v, "%03d %s %s", i, test.Rule, test.Description)
		}
		if len(still) < len(asNew) {
			fewer++
		}
		assert.Equal(t, still, find(knowing, Input{Object: object, Old: object}), "%03d %s %s", i, test.Rule, test.Description)
	}
	assert.NotZero(t, fewer, "some rules are about new objects only")
}

// TestValidObjects checks that the objects that TestRules breaks satisfy every rule, in a landscape
// and on their own.
func TestValidObjects(t *testing.T) {
	kinds := map[string]bool{}
	for gvk := range kindsWithSchema(t) {
		kinds[structure.RulesName(gvk)] = true
	}
	delete(kinds, "Namespace")
	delete(kinds, "extensions.Cluster") // neither has rules of its own
	for kind := range kinds {
		for _, around := range []*LandscapeObjects{nil, {Objects: []*unstructured.Unstructured{validObject(t, "CloudProfile")}}} {
			for _, old := range []*unstructured.Unstructured{nil, validObject(t, kind)} {
				violations, err := Validate(t.Context(), []Input{{Object: validObject(t, kind), Old: old}}, Options{Landscape: around})
				require.NoError(t, err)
				violations = slices.DeleteFunc(violations, func(v Violation) bool {
					return v.Rule == "secretbinding/deprecated" // every SecretBinding has it
				})
				assert.Empty(t, violations, "%s: %v", kind, formatViolations(violations))
			}
		}
	}
}

// TestProfileDefaults checks that a landscape with the cloud profile makes versions and images
// optional.
func TestProfileDefaults(t *testing.T) {
	shoot := patchObject(t, validObject(t, "Shoot"), `spec: {kubernetes: {version: null}, provider: {workers: [{name: a, machine: {type: local}, minimum: 1, maximum: 1}]}}`)
	alone, err := Validate(t.Context(), []Input{{Object: shoot}}, Options{})
	require.NoError(t, err)
	assert.Len(t, alone, 2)
	inside, err := Validate(t.Context(), []Input{{Object: shoot}}, Options{Landscape: &LandscapeObjects{Objects: []*unstructured.Unstructured{validObject(t, "CloudProfile")}}})
	require.NoError(t, err)
	assert.Empty(t, inside)
}

// TestDefaultedPoolVersion checks that a finding about the version of a pool that sets none names
// its origin.
func TestDefaultedPoolVersion(t *testing.T) {
	const cause = "and has that of spec.kubernetes.version"
	for pool, caused := range map[string]bool{"{name: local, machine: {type: local, image: {name: local, version: 1.0.0}}, minimum: 1, maximum: 1}": true,
		"{name: local, kubernetes: {version: 1.34.0}, machine: {type: local, image: {name: local, version: 1.0.0}}, minimum: 1, maximum: 1}": false} {
		shoot := patchObject(t, validObject(t, "Shoot"), "spec: {kubernetes: {version: 1.34.0}, provider: {workers: ["+pool+"]}}")
		found, err := Validate(t.Context(), []Input{{Object: shoot, Old: validObject(t, "Shoot")}}, Options{})
		require.NoError(t, err)
		about := map[string]bool{}
		for _, v := range found {
			if v.Rule == "shoot/version-update" {
				about[v.Field] = strings.Contains(v.Message, cause)
			}
		}
		assert.Equal(t, map[string]bool{"spec.kubernetes.version": false, "spec.provider.workers[0].kubernetes.version": caused}, about)
	}
}

// TestOperationOutsideLandscape checks that, like upstream, an operation is accepted in a manifest
// that someone applies manually.
func TestOperationOutsideLandscape(t *testing.T) {
	shoot := patchObject(t, validObject(t, "Shoot"), `metadata: {annotations: {gardener.cloud/operation: reconcile}}`)
	violations, err := Validate(t.Context(), []Input{{Object: shoot}}, Options{})
	require.NoError(t, err)
	assert.Empty(t, violations)
}

var indexPattern = regexp.MustCompile(`\[\d*\]`)

// templatePathPattern matches the path of an object inside another one that has the rules of its
// own kind.
var templatePathPattern = regexp.MustCompile(`^spec\.((gardenlet\.|template\.spec\.gardenlet\.)?config\.seedConfig|shootTemplate)\.`)

// isBelowFields reports whether the path of a finding is at or below one of the fields of a rule.
func isBelowFields(path, kind string, fields []string) bool {
	path = indexPattern.ReplaceAllString(path, "")
	if !slices.Contains([]string{"gardenlet", "managedseed", "managedseedset"}, kind) {
		path = templatePathPattern.ReplaceAllString(path, "")
	}
	return slices.ContainsFunc(fields, func(field string) bool { return isWithinPath(field, path) })
}

// hasRuleField reports whether a kind of the rule has the field.
func hasRuleField(t *testing.T, rule Rule, field string) bool {
	for gvk, kind := range kindsWithSchema(t) {
		if rule.isForKind(gvk) && kind.Root.FieldNode(fieldpath.Parse(field)) != nil {
			return true
		}
	}
	return false
}
