// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/schemas"
)

// validateFiles returns all findings about a landscape with these files, in the format of validate.
func validateFiles(t *testing.T, files map[string]string, folder string) (*Landscape, []string) {
	t.Helper()
	l, violations, err := LoadFS(t.Context(), tree(files), folder, Options{})
	require.NoError(t, err)
	found, err := l.Validate(t.Context(), schemas.Options{})
	require.NoError(t, err)
	all := append(violations, found...)
	schemas.SortViolations(all)
	var lines []string
	for _, v := range all {
		lines = append(lines, v.String())
	}
	return l, lines
}

// TestHealthRules: wants lists findings in the order of their places; each « in the spec marks the
// place of the next finding.
func TestHealthRules(t *testing.T) {
	rules := func(lines ...string) string {
		return "  health:\n    rules:\n    - " + strings.Join(lines, "\n      ") + "\n"
	}
	const database = "{apiGroup: example.org, kind: Database, "
	const notDeclared = "spec.health.rules[0].healthy: undeclared reference to 'obj'; the object is self [landscape/health]"
	const notDeclaredAfter = "spec.health.rules[1].healthy: undeclared reference to 'obj'; the object is self [landscape/health]"
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"good": {rules("apiGroup: example.org", "kind: Database", `healthy: self.status.phase == "Running"`, `progressing: "false"`,
			`message: '"phase " + self.status.phase'`), nil},
		"of a known kind":     {rules("{apiGroup: apps, kind: Deployment, healthy: self.status.availableReplicas > 0}"), nil},
		"of the core group":   {rules("{kind: PersistentVolumeClaim, healthy: self.status.phase == 'Bound'}"), nil},
		"always healthy":      {rules(database + "healthy: «'true'}"), []string{"warning: Landscape test: spec.health.rules[0].healthy: is always true, so no object of the kind ever fails or is waited for; write an expression over its status, such as self.status.ready [landscape/health]"}},
		"a boolean":           {rules(database + "healthy: «true}"), []string{"spec.health.rules[0].healthy: must be text"}},
		"only progressing":    {rules(database + "healthy: 'true', progressing: self.status.busy}"), nil},
		"the same":            {rules(database + "healthy: self.status.ready, progressing: «'self.status.ready'}"), []string{"warning: Landscape test: spec.health.rules[0].progressing: is the same expression as healthy, so an object is progressing only while it is healthy; write a condition of a rollout, or remove progressing [landscape/health]"}},
		"none":                {"  health: {rules: []}\n", nil},
		"others":              {"  health: {otherKinds: Existence}\n", nil},
		"others, misspelt":    {"  health: {otherKinds: «Existense}\n", []string{`spec.health.otherKinds: "Existense" is not supported; use "Status" or "Existence"`}},
		"threshold":           {"  managedResourceProgressingThreshold: 1h\n", nil},
		"threshold, negative": {"  managedResourceProgressingThreshold: «-1h\n", []string{"spec.managedResourceProgressingThreshold: must not be negative; 0s fails progressing objects at once [landscape/config]"}},
		"threshold, no time":  {"  managedResourceProgressingThreshold: «soon\n", []string{"spec.managedResourceProgressingThreshold: "}},

		"plain":               {rules(database + "healthy: «obj.status.ready}"), []string{notDeclared}},
		"plain, later":        {rules(database + "healthy: self.status.ready && «obj.x}"), []string{notDeclared}},
		"plain, two lines":    {rules("apiGroup: example.org", "kind: Database", "healthy: self.status.ready &&", "  «obj.x"), []string{notDeclared}},
		"in single quotes":    {rules(database + `healthy: 'self.a == "it''s" && «obj.x'}`), []string{notDeclared}},
		"in double quotes":    {rules(database + `healthy: "self.a == \"\x41\u00e4\" &&\t\n «obj.x"}`), []string{notDeclared}},
		"quotes, continued":   {rules("apiGroup: example.org", "kind: Database", `healthy: "self.a &\`, `  & «obj.x"`), []string{notDeclared}},
		"in a block":          {rules("apiGroup: example.org", "kind: Database", "healthy: |", "  self.status.ready &&", "    «obj.x"), []string{notDeclared}},
		"in a folded one":     {rules("apiGroup: example.org", "kind: Database", "healthy: >- # why", "  self.status.ready", "  && «obj.x == 1"), []string{notDeclared}},
		"with a tag":          {rules(database + "healthy: !!str «obj.x}"), []string{notDeclared}},
		"not only ASCII":      {rules(database + "healthy: self.name == 'ä' && «obj.x}"), []string{notDeclared}},
		"of an anchor":        {rules(database+"healthy: &x 'self.a && «obj.x'}") + "    - {apiGroup: example.org, kind: Other, healthy: «*x}\n", []string{notDeclared, notDeclaredAfter}},
		"two in one":          {rules(database + "healthy: «obj.a && «obj.x}"), []string{notDeclared, notDeclared}},
		"unknown function":    {rules(database + "healthy: self.a.«startWith('x')}"), []string{"spec.health.rules[0].healthy: undeclared reference to 'startWith'; did you mean startsWith? [landscape/health]"}},
		"unlike any":          {rules(database + "healthy: self.a.«foobar('x')}"), []string{"undeclared reference to 'foobar'; Kubernetes has CEL functions such as size, startsWith, contains"}},
		"of other languages":  {rules(database + "healthy: self.a.«length() > 1 && «lower(self.b)}"), []string{"undeclared reference to 'length'; did you mean size", "undeclared reference to 'lower'; did you mean lowerAscii?"}},
		"one ampersand":       {rules(database + "healthy: self.a «& self.b}"), []string{"Syntax error: token recognition error at: '& '; the operator is && ["}},
		"a word as operator":  {rules(database + "healthy: self.a «and self.b}"), []string{"; the operator is && ["}},
		"macro":               {rules(database + "healthy: self.a.«all(«y == 1)}"), []string{"undeclared reference to 'all' in this form; most often it is LIST.all(x, EXPRESSION OF x) [", "undeclared reference to 'y'"}},
		"syntax":              {rules(database + "healthy: self.a «= 1}"), []string{"spec.health.rules[0].healthy: Syntax error: token recognition error at: '= '; two values are compared by == [landscape/health]"}},
		"ends too early":      {rules(database + "healthy: self.a ==«}"), []string{"spec.health.rules[0].healthy: Syntax error: the expression ends too early [landscape/health]"}},
		"ends too early, too": {rules("apiGroup: example.org", "kind: Database", "healthy: |", "  self.a ==«"), []string{"spec.health.rules[0].healthy: Syntax error: the expression ends too early [landscape/health]"}},
		"wrong type": {rules(database + `healthy: '«"yes"', message: '«1'}`), []string{"spec.health.rules[0].healthy: yields string, expected bool",
			"spec.health.rules[0].message: yields int, expected string"}},
		"too long":     {rules(database + "healthy: «'" + strings.Repeat("true && ", 600) + "true'}"), []string{"spec.health.rules[0].healthy: has 4804 bytes, and at most 4096 are allowed"}},
		"nothing said": {rules("«{apiGroup: example.org, kind: Database}"), []string{"spec.health.rules[0].healthy: is required unless progressing is given"}},

		"a Secret":             {rules("{kind: «Secret, healthy: self.a}"), []string{"spec.health.rules[0].kind: a rule cannot judge Secrets"}},
		"no kind":              {rules("«{apiGroup: apps, healthy: 'self.a ==«'}"), []string{"spec.health.rules[0].kind: must be set", "spec.health.rules[0].healthy: Syntax error: "}},
		"an empty kind":        {rules("{apiGroup: apps, kind: «'', healthy: self.a}"), []string{"spec.health.rules[0].kind: is required"}},
		"a kind misspelt":      {rules("{apiGroup: apps, kind: «Deploymnt, healthy: self.a}"), []string{`spec.health.rules[0].kind: the group "apps" has no kind "Deploymnt"; did you mean Deployment?`}},
		"a kind without group": {rules("{kind: «StatefulSet, healthy: self.a}"), []string{`spec.health.rules[0].kind: the core group has no kind "StatefulSet"; it is one of apiGroup apps [landscape/health]`}},
		"a group misspelt":     {rules("{apiGroup: «app, kind: Deployment, healthy: self.a}"), []string{`spec.health.rules[0].apiGroup: there is no API group "app"; did you mean apps?`}},
		"a version":            {rules("{apiGroup: «apps/v1, kind: Deployment, healthy: self.a}"), []string{`spec.health.rules[0].apiGroup: "apps/v1" has a version`}},
		"twice":                {rules("{kind: Pod, healthy: self.a}") + "    - «{kind: Pod, healthy: «obj}\n", []string{"spec.health.rules[1]: is already used by spec.health.rules[0]", notDeclaredAfter}},
		"no text":              {rules("{kind: Pod, healthy: «true}"), []string{"spec.health.rules[0].healthy: must be text"}},
		"no rule":              {rules("«Pod"), []string{"spec.health.rules[0]: must be an object"}},
		"an unknown field":     {rules("{kind: Pod, «healty: 'true', progressing: 'true'}"), []string{`the field "healty" does not exist; did you mean "healthy"?`}},
	} {
		t.Run(name, func(t *testing.T) {
			text, places := extractMarks(withSpec(test.spec))
			_, lines := validateFiles(t, map[string]string{"landscape.yaml": text}, ".")
			require.Len(t, lines, len(test.want), "%s", strings.Join(lines, "\n"))
			require.Len(t, places, len(test.want))
			for i, want := range test.want {
				severity := "error"
				if strings.HasPrefix(want, "warning: ") {
					severity = "warning"
				}
				assert.True(t, strings.HasPrefix(lines[i], "landscape.yaml:"+places[i]+": "+severity+": Landscape test: "), "%s: %s", places[i], lines[i])
				assert.Contains(t, lines[i], want)
				assert.NotContains(t, lines[i], "container")
				assert.NotContains(t, lines[i], "expecting {")
			}
		})
	}
}

// extractMarks removes the marks from a text and returns their places as LINE:COLUMN.
func extractMarks(marked string) (text string, places []string) {
	var b strings.Builder
	line, column := 1, 1
	for _, r := range marked {
		switch r {
		case '«':
			places = append(places, fmt.Sprintf("%d:%d", line, column))
			continue
		case '\n':
			line, column = line+1, 0
		}
		column++
		b.WriteRune(r)
	}
	return b.String(), places
}

func TestTooManyHealthRules(t *testing.T) {
	var text strings.Builder
	text.WriteString("  health:\n    rules:\n")
	for i := range 257 {
		fmt.Fprintf(&text, "    - {apiGroup: a.org, kind: K%d, healthy: self.a}\n", i)
	}
	_, lines := validateFiles(t, map[string]string{"landscape.yaml": withSpec(text.String())}, ".")
	assert.Equal(t, []string{"landscape.yaml:263:31: error: Landscape test: spec.health.rules[256].kind: there are 257 rules, and at most 256 are allowed [landscape/health]"}, lines)
}

// TestHealthRulesOfALayer: a finding names the file that contains the rule.
func TestHealthRulesOfALayer(t *testing.T) {
	rule := func(healthy string) string {
		return withSpec("  health: {rules: [{apiGroup: example.org, kind: Database, healthy: " + healthy + "}]}\n")
	}
	base, places := extractMarks(rule("self.a && «obj"))
	files := map[string]string{"live/landscape.yaml": withSpec("  layers: [../base]\n"), "base/landscape.yaml": base}
	_, lines := validateFiles(t, files, "live")
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], "../base/landscape.yaml:"+places[0]+": error: ")

	files["live/landscape.yaml"] = withSpec("  layers: [../base]\n  health: {rules: [{apiGroup: example.org, kind: Other, healthy: self.status.ready}]}\n")
	l, lines := validateFiles(t, files, "live")
	assert.Empty(t, lines, "a list replaces the one of the layer below")
	assert.Equal(t, "Other", l.Config.Spec.Health.Rules[0].Kind)
}
