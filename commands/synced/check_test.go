// SPDX-License-Identifier: Apache-2.0

package synced

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/landscapes"
)

// TestCheck: Landscape objects are checked before they are applied. The texts begin at
// `source:` in the spec.
func TestCheck(t *testing.T) {
	const (
		git  = "  source:\n    url: https://git.example.org/landscapes.git\n"
		oci  = "  source:\n    url: oci://registry.example.org/landscapes\n"
		tell = "  source:\n    url: https://git.example.org/org/landscapes.git\n  notifications:\n  - "
	)
	from := func(url string) string { return "  source:\n    url: " + url + "\n" }
	for name, test := range map[string]struct{ spec, want string }{
		"git": {git + "    ref: {branch: main}\n    path: production\n    interval: 1m\n    secretRef: {name: git}\n    verify: {secretRef: {name: keys}}\n" +
			"  dependsOn: [{name: base}]\n  windows: [{schedule: \"0 8 * * 1-5\", duration: 8h}]\n", ""},
		"ssh":               {from("ssh://git@git.example.org/landscapes") + "    secretRef: {name: git}\n", ""},
		"artifact":          {oci + "    ref: {tag: v1}\n    secretRef: {name: x}\n", ""},
		"plain":             {from("http://git.example.org/x") + "    insecure: true\n    secretRef: {name: x}\n", ""},
		"a tag, signed":     {git + "    ref: {semver: \">=1.2.0 <2\"}\n    verify: {mode: Tag, secretRef: {name: keys}}\n", ""},
		"a commit of a tag": {git + "    ref: {tag: v1, commit: 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567}\n", ""},
		"settings alone":    {"  timeout: 30m\n", ""},
		"left to schema":    {from("git.example.org/x"), ""},

		"a login":            {from("https://git:tok@git.example.org/x.git"), "lo.yaml:1:1: error: spec.source.url: the url of the source contains a password"},
		"a token":            {from("https://tok@git.example.org/x.git"), "lo.yaml:1:1: error: spec.source.url: https://git.example.org/x.git: a user name in the url is not supported"},
		"no secret for SSH":  {from("ssh://git@git.example.org/x"), "6:10: error: spec.source.url: ssh://git@git.example.org/x: SSH needs a Secret"},
		"a tag in the url":   {from("oci://registry.example.org/landscapes:v1"), "6:10: error: spec.source.url: "},
		"a page":             {from("https://github.com/org/repo/tree/main/production"), "6:10: warning: spec.source.url: looks like the page of a folder on a forge"},
		"a page of GitLab":   {from("https://gitlab.com/a/b/c/-/tree/main"), "warning: spec.source.url: looks like the page"},
		"a repository tree":  {from("https://git.example.org/tree/main"), ""},
		"plain with login":   {from("http://git.example.org/x") + "    secretRef: {name: x}\n", "6:10: error: spec.source.url: http://git.example.org/x: credentials over plain HTTP"},
		"a file with login":  {from("file:///srv/x") + "    secretRef: {name: x}\n", "spec.source.secretRef: a file url takes no credentials"},
		"branch of OCI":      {oci + "    ref: {branch: main}\n", "7:19: error: spec.source.ref.branch: is for Git"},
		"digest of Git":      {git + "    ref: {digest: sha256:" + strings.Repeat("a", 64) + "}\n", "7:19: error: spec.source.ref.digest: is for OCI artifacts"},
		"an empty range":     {git + "    ref: {semver: \">=2.0 <1.0\"}\n", "7:19: error: spec.source.ref.semver: contains no version"},
		"no range":           {git + "    ref: {semver: latest}\n", "7:19: error: spec.source.ref.semver: \"latest\" is not a range of versions"},
		"two references":     {git + "    ref: {branch: main, tag: v1}\n", "7:19: warning: spec.source.ref.branch: has no effect together with tag"},
		"the whole name":     {git + "    ref: {branch: refs/heads/main}\n", "7:19: error: spec.source.ref.branch: \"refs/heads/main\" cannot be the name of a branch"},
		"of a clone":         {git + "    ref: {branch: origin/main}\n", "7:19: warning: spec.source.ref.branch: is how clones name branch main of the repository; write main"},
		"path from the root": {git + "    path: /production\n", `7:11: warning: spec.source.path: is relative to the repository, and is read as "production"; write that`},
		"path to outside":    {git + "    path: ../production\n", `warning: spec.source.path: is relative to the repository, and is read as "production"`},
		"path of a file":     {git + "    path: production/landscape.yaml\n", "7:11: error: spec.source.path: names a file; give the folder that has landscape.yaml"},
		"signed branch":      {git + "    verify: {mode: Tag, secretRef: {name: k}}\n", "7:20: error: spec.source.verify.mode: Tag needs ref.tag or ref.semver"},
		"signed artifact":    {oci + "    verify: {secretRef: {name: k}}\n", "7:13: error: spec.source.verify: oci://registry.example.org/landscapes: signatures of artifacts are not verified"},
		"always asking":      {git + "    interval: 1ms\n", "7:15: warning: spec.source.interval: 1ms is less than 10s"},
		"itself":             {git + "  dependsOn: [{name: production}]\n", "7:22: error: spec.dependsOn[0].name: is the Landscape itself"},
		"a window never":     {git + "  windows: [{schedule: \"0 8 31 4 *\", duration: 8h}]\n", "error: spec.windows: none of them ever opens"},

		"commit status":        {tell + "{name: a, type: commitStatus, provider: github, secretRef: {name: x}}\n", ""},
		"webhook":              {tell + "{name: a, type: webhook, url: \"https://chat.example.org/x\"}\n", ""},
		"webhook inside":       {tell + "{name: a, type: webhook, url: \"http://chat.garden.svc/x\"}\n", ""},
		"no provider":          {tell + "{name: a, type: commitStatus, secretRef: {name: x}}\n", "error: spec.notifications[0].provider: must be set for a commit status"},
		"no token":             {tell + "{name: a, type: commitStatus, provider: github}\n", "8:5: error: spec.notifications[0]: notification \"a\": a commit status needs a secretRef"},
		"status of OCI":        {oci + "  notifications:\n  - {name: a, type: commitStatus, provider: github, secretRef: {name: x}}\n", "error: spec.notifications[0]: notification \"a\": a commit status cannot be set: a source with scheme oci is not on a forge"},
		"no url":               {tell + "{name: a, type: webhook}\n", "error: spec.notifications[0].url: must be set for a webhook"},
		"webhook and provider": {tell + "{name: a, type: webhook, url: \"https://chat.example.org/x\", provider: github}\n", "warning: spec.notifications[0].provider: has no effect on a webhook"},
		"webhook, plain":       {tell + "{name: a, type: webhook, url: \"http://chat.example.org/x\"}\n", "warning: spec.notifications[0].url: is plain HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: production, namespace: garden}\nspec:\n" + test.spec
			declarations, violations, err := landscapes.Parse(t.Context(), "lo.yaml", []byte(text), landscapes.Options{})
			require.NoError(t, err)
			require.Len(t, declarations, 1)
			violations = append(violations, Check(&declarations[0])...)
			if test.want == "" {
				assert.Empty(t, violations)
				return
			}
			require.Len(t, violations, 1, "%v", violations)
			assert.Contains(t, strings.Replace(violations[0].String(), "Landscape garden/production: ", "", 1), test.want)
			assert.NotContains(t, violations[0].String(), "tok@")
		})
	}
}

func TestIsEmptyRange(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "*": false, ">=1.2.0 <2": false, "~1.2": false, "^0.3": false, "1.x": false, ">1.2.3": false, "<1": false, "<0.0.1": false, "1.2.3": false, ">=1.0.0-rc.1": false,
		">1.2.3 <1.2.5": false, "1.0 - 2.0": false, "<1.0 || >2.0": false, "!=1.0.0": false, ">=2.0 <1.0": true, ">1.2.3 <1.2.4": true, "<0.0.0": true, ">=2 <1 || >=4 <3": true, "~1.2 >=1.3": true,
	} {
		assert.Equal(t, want, isEmptyRange(text), text)
	}
}
