// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	profileYAML    = "apiVersion: core.gardener.cloud/v1beta1\nkind: CloudProfile\nmetadata: {name: local}\nspec: {type: local, caBundle: parent, kubernetes: {versions: [{version: 1.33.5}]}, machineTypes: [{name: small}], machineImages: [{name: os, versions: [{version: 1.0.0}]}]}\n"
	namespacedYAML = "apiVersion: core.gardener.cloud/v1beta1\nkind: NamespacedCloudProfile\nmetadata: {name: own, namespace: garden-dev}\nspec: {parent: {kind: CloudProfile, name: PARENT}REST}\n"
)

// TestShootsAndVersionsThatCannotBeRendered: findings have the position of the faulty field.
func TestShootsAndVersionsThatCannotBeRendered(t *testing.T) {
	for name, test := range map[string]struct {
		shoot, more string
		want        []string
	}{
		"a profile":         {shoot: ", seedName: eu, cloudProfile: {name: local}"},
		"no profile":        {", seedName: eu, cloudProfile: {name: locl}", "", []string{`a.yaml:5:99 landscape/binding Shoot spec.cloudProfile.name: no CloudProfile "locl" in this landscape; did you mean "local"?`}},
		"not bound":         {", cloudProfile: {name: nope}", "", []string{`a.yaml:5:85 landscape/binding Shoot spec.cloudProfile.name: no CloudProfile "nope" in this landscape`}},
		"old field":         {", seedName: eu, cloudProfileName: nope", "", []string{`a.yaml:5:96 landscape/binding Shoot spec.cloudProfileName: no CloudProfile "nope" in this landscape`}},
		"all that is wrong": {", seedName: us, cloudProfileName: nope", "", []string{`a.yaml:5:74 landscape/binding Shoot spec.seedName: no Seed "us" in this landscape`, `a.yaml:5:96 landscape/binding Shoot spec.cloudProfileName: no CloudProfile "nope" in this landscape`}},
		"no namespaced":     {", seedName: eu, cloudProfile: {kind: NamespacedCloudProfile, name: local}", "", []string{`a.yaml:5:129 landscape/binding Shoot spec.cloudProfile.name: no NamespacedCloudProfile "local" in namespace garden-dev of this landscape`}},
		"a version":         {", kubernetes: {version: 1.34.x}", "", []string{`a.yaml:5:69 landscape/kubernetes-version Shoot spec.kubernetes.version: "1.34.x" is not a Kubernetes version such as 1.36.0`}},
		"of the garden":     {"", "apiVersion: operator.gardener.cloud/v1alpha1\nkind: Garden\nmetadata: {name: main}\nspec: {virtualCluster: {kubernetes: {version: 1.34.x}}}\n", []string{`more.yaml:4:47 landscape/kubernetes-version Garden spec.virtualCluster.kubernetes.version: "1.34.x" is not a Kubernetes version such as 1.36.0`}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := shootYAML("a", "garden-dev", test.shoot)
			if name == "a version" {
				shoot = "# a shoot\napiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {name: a, namespace: garden-dev}\nspec: {provider: {type: local}, seedName: eu" + test.shoot + "}\n"
			}
			files := map[string]string{"landscape.yaml": landscapeFile("{}"), "s.yaml": seedYAML, "p.yaml": projectYAML, "profile.yaml": profileYAML, "a.yaml": shoot}
			if test.more != "" {
				files["more.yaml"] = test.more
			}
			l := loadLandscape(t, files)
			var got []string
			for _, v := range CheckLandscape(smallCatalogue(t, nil), l) {
				got = append(got, fmt.Sprintf("%s:%d:%d %s %s %s: %s", v.File, v.Line, v.Column, v.Rule, v.Kind, v.Field, v.Message))
			}
			assert.Equal(t, test.want, got)
			_, err := Owners(l)
			assert.Equal(t, len(test.want) > 0, err != nil)
		})
	}
}

func TestNamespacedCloudProfile(t *testing.T) {
	build := func(parent, rest string) ([]Input, error) {
		l := loadLandscape(t, map[string]string{
			"landscape.yaml": landscapeFile("{}"), "s.yaml": seedYAML, "p.yaml": projectYAML, "profile.yaml": profileYAML,
			"own.yaml": strings.NewReplacer("PARENT", parent, "REST", rest).Replace(namespacedYAML),
			"a.yaml":   shootYAML("a", "garden-dev", ", seedName: eu, cloudProfile: {kind: NamespacedCloudProfile, name: own}"),
		})
		return Owners(l)
	}
	inputs, err := build("local", ", caBundle: own, kubernetes: {versions: [{version: 1.33.5, expirationDate: \"2027-01-01T00:00:00Z\"}]}, machineTypes: [{name: big}], machineImages: [{name: os, versions: [{version: 2.0.0}]}, {name: other}], limits: {maxNodesTotal: 3}")
	require.NoError(t, err)
	profile := inputs[1].Objects["cloudProfile"]
	for path, want := range map[string]any{"caBundle": "parent\nown", "type": "local"} {
		got, _, _ := nestedField(profile, "spec", path)
		assert.Equal(t, want, got, path)
	}
	limit, _, _ := nestedField(profile, "spec", "limits", "maxNodesTotal")
	assert.EqualValues(t, 3, limit)
	types, _, _ := nestedField(profile, "spec", "machineTypes")
	assert.Len(t, types, 2)
	images, _, _ := nestedField(profile, "spec", "machineImages")
	require.Len(t, images, 2)
	assert.Len(t, images.([]any)[0].(map[string]any)["versions"], 2)
	versions, _, _ := nestedField(profile, "spec", "kubernetes", "versions")
	assert.Equal(t, "2027-01-01T00:00:00Z", versions.([]any)[0].(map[string]any)["expirationDate"])

	_, err = build("nope", "")
	assert.EqualError(t, err, `own.yaml:4:43: NamespacedCloudProfile garden-dev/own: spec.parent.name: no CloudProfile "nope" in this landscape`)
}

// TestErrorsOfComponentsNameTheDeclaration: a value of the declaration may be to blame.
func TestErrorsOfComponentsNameTheDeclaration(t *testing.T) {
	l := loadLandscape(t, map[string]string{"landscape.yaml": landscapeFile("{}"), "s.yaml": "# the Seed\n" + seedYAML})
	_, err := All(l, smallCatalogue(t, map[string]string{"seed/app/component.cue": component("cue: [{kind: seed.spec.nope}]", "")}), nil)
	assert.ErrorContains(t, err, "seed eu (declared in s.yaml:2:1), component seed/app: ")
}

func TestImageOverridesAreImages(t *testing.T) {
	for image, want := range map[string]string{
		"repository: registry.example.org:5000/a/b__c-d": "",
		"repository: app": "",
		"repository: \"https://registry.example.org/a\"":    "spec.images[0].repository",
		"repository: \"registry.example.org/a:v1\"":         "spec.images[0].repository",
		"repository: registry.example.org/Team":             "spec.images[0].repository",
		"repository: \"a b\"":                               "spec.images[0].repository",
		"tag: v1.2.4":                                       "",
		"tag: v1.2.3":                                       "spec.images[0]",
		"tag: 1.2.4":                                        "spec.images[0].tag",
		"repository: registry.example.org/other/sidecar":    "spec.images[0].repository",
		"tag: \"v1 2\"":                                     "spec.images[0].tag",
		"tag: \":v1\"":                                      "spec.images[0].tag",
		"tag: \"sha256:abc\"":                               "spec.images[0].tag",
		"tag: \"sha256:" + hexDigest + "\"":                 "",
		"repository: registry.example.org/a, tag: \"v1/2\"": "spec.images[0].tag",
	} {
		l := loadLandscape(t, map[string]string{"landscape.yaml": landscapeFile("{images: [{name: app, " + image + "}]}")})
		violations := CheckLandscape(smallCatalogue(t, map[string]string{"imagevector.yaml": "images:\n- {name: app, repository: registry.example.org/app, tag: v1.2.3}\n- {name: sidecar, repository: registry.example.org/sidecar, tag: v1.2.3}\n"}), l)
		if want == "" {
			assert.Empty(t, violations, image)
		} else if assert.Len(t, violations, 1, image) {
			assert.Equal(t, [2]string{want, "landscape/image"}, [2]string{violations[0].Field, violations[0].Rule}, image)
		}
	}
}

const hexDigest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
