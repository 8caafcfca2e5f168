// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/health"
	"github.com/pergola-dev/pergola/health/custom"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(raw))
	return obj
}

func compile(t *testing.T, rules ...custom.Rule) *custom.RuleSet {
	t.Helper()
	set, err := custom.Compile(rules)
	require.NoError(t, err)
	return set
}

func databaseManifest(status string) string {
	return `{apiVersion: example.org/v1, kind: Database, metadata: {name: x, generation: 2, creationTimestamp: null}, spec: {replicas: 3}, status: ` + status + `}`
}

func TestVerdicts(t *testing.T) {
	full := custom.Rule{
		APIGroup: "example.org", Kind: "Database",
		Healthy:     `self.status.phase == "Running" && self.status.observedGeneration == self.metadata.generation`,
		Progressing: `self.status.?ready.orValue(0) < self.spec.replicas`,
		Message:     `"phase is " + self.status.phase`,
	}
	only := func(healthy string) custom.Rule {
		return custom.Rule{APIGroup: "example.org", Kind: "Database", Healthy: healthy}
	}
	for name, c := range map[string]struct {
		rule                 custom.Rule
		status               string
		healthy, progressing bool
		kstatus              health.Status
		reason, message      string
	}{
		"well":                {full, `{phase: Running, observedGeneration: 2, ready: 3}`, true, false, "Current", "", "Database is healthy"},
		"rolling out":         {full, `{phase: Running, observedGeneration: 2, ready: 1}`, true, true, "InProgress", "DatabaseProgressing", "phase is Running"},
		"failed":              {full, `{phase: Broken, observedGeneration: 2, ready: 3}`, false, false, "Failed", "DatabaseUnhealthy", "phase is Broken"},
		"starting":            {full, `{phase: Starting, observedGeneration: 2}`, false, true, "InProgress", "DatabaseUnhealthy", "phase is Starting"},
		"field missing":       {full, `{phase: Running}`, false, true, "InProgress", "DatabaseUnhealthy", `field "observedGeneration" is not reported yet`},
		"no status":           {full, `null`, false, true, "InProgress", "DatabaseUnhealthy", `field "status" is not reported yet`},
		"item missing":        {only(`self.status.list[1] == "a"`), `{list: [a]}`, false, true, "InProgress", "DatabaseUnhealthy", "a value that the landscape's rule reads is not reported yet"},
		"null is missing":     {only(`self.status.phase == "a"`), `{phase: null}`, false, true, "InProgress", "DatabaseUnhealthy", `field "phase" is not reported yet`},
		"no message":          {only(`self.status.phase == "a"`), `{phase: b}`, false, false, "Failed", "DatabaseUnhealthy", "the health rule for Database says so"},
		"wrong types":         {only(`self.status.phase + 1 == 2`), `{phase: b}`, false, false, "Unknown", "HealthCheckError", "the health rule for Database cannot be evaluated: healthy: no such overload"},
		"not a bool":          {only(`self.status.phase`), `{phase: b}`, false, false, "Unknown", "HealthCheckError", "the health rule for Database cannot be evaluated: healthy: yields string, expected bool"},
		"numbers of any kind": {only(`self.status.share >= 1 && self.status.count < 2.5`), `{share: 1.5, count: 2}`, true, false, "Current", "", "Database is healthy"},
		"conditions": {only(`self.status.conditions.exists(c, c.type == "Ready" && c.status == "True")`), `{conditions: [{type: Other, status: "False"}, {type: Ready, status: "True"}]}`,
			true, false, "Current", "", "Database is healthy"},
		"libraries": {only(`quantity(self.status.free).isGreaterThan(quantity("1Gi")) && self.status.version.matches("^v[0-9]") && isSemver(self.status.plain)`),
			`{free: 2Gi, version: v1, plain: 1.2.3}`, true, false, "Current", "", "Database is healthy"},
		"message cannot be had": {custom.Rule{APIGroup: "example.org", Kind: "Database", Healthy: `false`, Message: `self.status.why`}, `{}`,
			false, false, "Failed", "DatabaseUnhealthy", `the health rule for Database says so, but its message cannot be evaluated: field "why" is not reported yet`},
		"message with a password": {custom.Rule{APIGroup: "example.org", Kind: "Database", Healthy: `false`, Message: `self.status.why`}, `{why: "login failed, password=hunter2"}`,
			false, false, "Failed", "DatabaseUnhealthy", "login failed, password=[hidden]"},
	} {
		t.Run(name, func(t *testing.T) {
			v := health.Check(object(t, databaseManifest(c.status)), health.WithRules(compile(t, c.rule)))
			assert.Equal(t, c.healthy, v.Healthy, "%+v", v)
			assert.Equal(t, c.progressing, v.Progressing, "%+v", v)
			assert.Equal(t, c.kstatus, v.Status, "%+v", v)
			assert.Equal(t, c.reason, v.Reason, "%+v", v)
			assert.Equal(t, c.message, v.Message)
		})
	}
}

func TestRulesOverrideBuiltInRules(t *testing.T) {
	deployment := object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, status: {availableReplicas: 1,
		conditions: [{type: Available, status: "False", reason: R, message: m}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}}`)
	require.False(t, health.Check(deployment).Healthy)

	set := compile(t, custom.Rule{APIGroup: "apps", Kind: "Deployment", Healthy: `self.status.availableReplicas > 0`})
	v := health.Check(deployment, health.WithRules(set))
	assert.True(t, v.Healthy)
	assert.False(t, v.Progressing, "what the rule does not say is left to the built-in one")

	set = compile(t, custom.Rule{APIGroup: "apps", Kind: "Deployment", Progressing: `true`})
	v = health.Check(deployment, health.WithRules(set))
	assert.False(t, v.Healthy)
	assert.True(t, v.Progressing)
	assert.Contains(t, v.Message, "R: m")

	deployment.SetAnnotations(map[string]string{"resources.gardener.cloud/skip-health-check": "true"})
	assert.False(t, health.Check(deployment, health.WithRules(set)).Progressing, "the annotation switches all checks off")

	other := object(t, `{apiVersion: other.org/v1, kind: Deployment, metadata: {name: x}}`)
	_, ruled := set.Judge(other)
	assert.False(t, ruled, "a namesake of another group is another kind")
}

// TestMisspeltFields: a missing field with a similar name in the object is likely misspelt.
func TestMisspeltFields(t *testing.T) {
	for rule, want := range map[string]string{
		`self.status.phse == "Running"`:   `field "phse" is not reported yet; the object has "phase"`,
		`self.staus.phase == "Running"`:   `field "staus" is not reported yet; the object has "status"`,
		`self.status.Phase == "Running"`:  `field "Phase" is not reported yet; the object has "phase"`,
		`self.status.lists[0].nam == "a"`: `field "nam" is not reported yet; the object has "name"`,
		`self.status.availableReplicas>0`: `field "availableReplicas" is not reported yet`,
		`self.status.ready`:               `field "ready" is not reported yet`,
	} {
		set := compile(t, custom.Rule{APIGroup: "example.org", Kind: "Database", Healthy: rule})
		v := health.Check(object(t, databaseManifest(`{phase: Running, unavailableReplicas: 1, lists: [{name: a}]}`)), health.WithRules(set))
		assert.Equal(t, want, v.Message, rule)
	}
}

func TestErrorsOfRules(t *testing.T) {
	rule := func(healthy string) custom.Rule { return custom.Rule{Kind: "Foo", APIGroup: "x.io", Healthy: healthy} }
	for name, c := range map[string]struct {
		rule custom.Rule
		want string
	}{
		"syntax":         {rule("self.a ==\n  == 1"), "rules[0].healthy:2:3: Syntax error"},
		"undeclared":     {rule("object.a == 1"), "rules[0].healthy:1:1: undeclared reference to 'object'"},
		"unknown call":   {rule("self.a.foo()"), "rules[0].healthy:1:11: undeclared reference to 'foo'"},
		"type":           {rule(`"yes"`), "rules[0].healthy:1:1: yields string, expected bool"},
		"message type":   {custom.Rule{Kind: "Foo", Healthy: "true", Message: "1"}, "rules[0].message:1:1: yields int, expected string"},
		"no expression":  {custom.Rule{Kind: "Foo"}, "rules[0].healthy: is required"},
		"no kind":        {custom.Rule{Healthy: "true"}, "rules[0].kind: is required"},
		"with a version": {custom.Rule{APIGroup: "x.io/v1", Kind: "Foo", Healthy: "true"}, "rules[0].apiGroup: \"x.io/v1\" has a version"},
		"Secret":         {custom.Rule{Kind: "Secret", Healthy: "true"}, "rules[0].kind: a rule cannot judge Secrets"},
		"too long":       {rule(strings.Repeat("true && ", 1000) + "true"), "at most 4096"},
		"too deep":       {rule(strings.Repeat("(", 1500) + "true" + strings.Repeat(")", 1500)), "rules[0].healthy"},
		"bad regex":      {rule(`self.a.matches("(")`), "rules[0].healthy:1:16: invalid matches argument"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := custom.Compile([]custom.Rule{c.rule})
			assert.Nil(t, set)
			require.ErrorContains(t, err, c.want)
			var list custom.Errors
			require.ErrorAs(t, err, &list)
		})
	}
	t.Run("all at once", func(t *testing.T) {
		_, err := custom.Compile([]custom.Rule{rule("nope"), rule("true"), {Kind: "Bar", Healthy: "1", Progressing: "2"}})
		var list custom.Errors
		require.True(t, errors.As(err, &list))
		var where []string
		for _, e := range list {
			where = append(where, strings.SplitN(e.Error(), " ", 2)[0])
		}
		assert.Equal(t, []string{"rules[0].healthy:1:1:", "rules[1].kind:", "rules[2].healthy:1:1:", "rules[2].progressing:1:1:"}, where)
	})
	t.Run("too many", func(t *testing.T) {
		_, err := custom.Compile(make([]custom.Rule, 257))
		assert.ErrorContains(t, err, "at most 256")
	})
}

func TestLongListsAreWithinCostLimit(t *testing.T) {
	set := compile(t, custom.Rule{APIGroup: "example.org", Kind: "Database",
		Healthy: `self.status.l.all(c, has(c.status) && c.status != "Failed")`})
	list := make([]any, 10_000)
	for i := range list {
		list[i] = map[string]any{"status": "Done"}
	}
	obj := object(t, databaseManifest(`{}`))
	require.NoError(t, unstructured.SetNestedSlice(obj.Object, list, "status", "l"))
	v := health.Check(obj, health.WithRules(set))
	assert.True(t, v.Healthy, v.Message)
}

// TestCostIsBounded: an expression with the fourth power of a list as its cost must fail soon.
func TestCostIsBounded(t *testing.T) {
	set := compile(t, custom.Rule{APIGroup: "example.org", Kind: "Database",
		Healthy: `self.status.l.all(a, self.status.l.all(b, self.status.l.all(c, self.status.l.all(d, a + b + c + d >= 0))))`})
	list := make([]any, 1000)
	for i := range list {
		list[i] = int64(i)
	}
	obj := object(t, databaseManifest(`{}`))
	require.NoError(t, unstructured.SetNestedSlice(obj.Object, list, "status", "l"))
	v := health.Check(obj, health.WithRules(set))
	assert.False(t, v.Healthy)
	assert.Equal(t, health.ReasonHealthCheckError, v.Reason)
	assert.Equal(t, health.StatusUnknown, v.Status)
	assert.Contains(t, v.Message, "cost limit exceeded")
}

func TestNoRules(t *testing.T) {
	obj := object(t, databaseManifest(`{}`))
	var none *custom.RuleSet
	for _, set := range []*custom.RuleSet{none, {}, compile(t)} {
		_, ok := set.Judge(obj)
		assert.False(t, ok)
		assert.True(t, health.Check(obj, health.WithRules(set)).Healthy)
	}
}

func TestConcurrentUse(t *testing.T) {
	set := compile(t, custom.Rule{APIGroup: "example.org", Kind: "Database", Healthy: `self.status.phase == "Running"`})
	obj := object(t, databaseManifest(`{phase: Running}`))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				assert.True(t, health.Check(obj, health.WithRules(set)).Healthy)
			}
		})
	}
	wg.Wait()
}
