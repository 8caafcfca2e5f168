// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas"
)

func TestDropSupersededWarnings(t *testing.T) {
	seed := func(rule, field, message string) schemas.Violation {
		return schemas.Violation{Kind: "Seed", Name: "a", Rule: rule, Field: field, Message: message}
	}
	zone, zoneInUse := seed("seed/zones-stay", "spec.provider.zones", `lost "z"; and so on`), seed("seed/zones-in-use", "spec.provider.zones", `lost the zone "z", and Shoots are on the seed: "s"`)
	domain, domainInUse := seed("seed/domains-changed", "spec.dns.defaults", `lost "d"`), seed("seed/domains-in-use", "spec.dns.defaults", `lost "d", and Shoots have names below it`)
	otherDomain := seed("seed/domains-changed", "spec.dns.defaults", `lost "e"`)
	otherSeed := zone
	otherSeed.Name = "b"
	assert.Equal(t, []schemas.Violation{otherSeed, zoneInUse, otherDomain, domainInUse}, DropDuplicates([]schemas.Violation{zone, otherSeed, zoneInUse, domain, otherDomain, domainInUse}))
	assert.Equal(t, []schemas.Violation{zone, domain}, DropDuplicates([]schemas.Violation{zone, domain}), "of Shoots that are not in Git only the API knows")
}

// TestOneFindingPerFault checks that several rules about one value give one finding, and that
// each further fault has its own.
func TestOneFindingPerFault(t *testing.T) {
	for name, test := range map[string]struct {
		change string
		want   []string
	}{
		"a version that nobody has":              {"kind: Shoot\nspec: {kubernetes: {version: 1.29.0}}", []string{"spec.kubernetes.version shoot/versions-offered", "spec.provider.workers[0].machine.image.version shoot/images-offered"}},
		"a version that is none":                 {"kind: Shoot\nspec: {kubernetes: {version: 1.34.x}}", []string{"spec.kubernetes.version shoot/kubernetes-version-form"}},
		"a domain with a capital":                {"kind: Shoot\nspec: {dns: {domain: One.team.shoots.example.org}}", []string{"spec.dns.domain shoot/dns-domain"}},
		"the begin of a window":                  {"kind: Shoot\nspec: {maintenance: {timeWindow: {begin: \"22:00\", end: 230000+0100}}}", []string{"spec.maintenance.timeWindow.begin structure"}},
		"the end of a window":                    {"kind: Shoot\nspec: {maintenance: {timeWindow: {begin: 220000+0100, end: 11pm}}}", []string{"spec.maintenance.timeWindow.end structure"}},
		"both ends of a window":                  {"kind: Shoot\nspec: {maintenance: {timeWindow: {begin: 10pm, end: 11pm}}}", []string{"spec.maintenance.timeWindow.begin structure", "spec.maintenance.timeWindow.end structure"}},
		"a binding that can have no such name":   {"kind: Shoot\nspec: {credentialsBindingName: Ac_count}", []string{"spec.credentialsBindingName shoot/binding-names"}},
		"a class that can have no such name":     {"kind: Shoot\nspec: {exposureClassName: Ac_count, seedName: null}", []string{"spec.exposureClassName shoot/references-named"}},
		"a provider that is no name":             {"kind: Shoot\nspec: {provider: {type: Cloud}}", []string{"spec.provider.type shoot/extension-types"}},
		"a provider that is another one":         {"kind: Shoot\nspec: {provider: {type: other}}", []string{"spec.provider.type shoot/provider-offered"}},
		"a namespace that is no name":            {"kind: Shoot\nmetadata: {namespace: Garden_team}\nspec: {credentialsBindingName: null, seedName: null}", []string{"metadata.namespace shoot/project-exists", "spec.secretBindingName shoot/binding"}},
		"a name of a Seed that is none":          {"kind: Seed\nmetadata: {name: a_b}", []string{"metadata.name seed/name"}},
		"a Secret that can have no such name":    {"kind: CredentialsBinding\ncredentialsRef: {name: Ac_count}", []string{"credentialsRef.name credentialsbinding/credentials"}},
		"a namespace that can have no such name": {"kind: CredentialsBinding\ncredentialsRef: {namespace: Gar_den}", []string{"credentialsRef.namespace credentialsbinding/credentials"}},
		"credentials of another kind":            {"kind: CredentialsBinding\ncredentialsRef: {kind: Pod}", []string{"credentialsRef credentialsbinding/credentials"}},
		"credentials of no kind":                 {"kind: CredentialsBinding\ncredentialsRef: {kind: null}", []string{"credentialsRef.kind credentialsbinding/credentials"}},
		"credentials of no name":                 {"kind: CredentialsBinding\ncredentialsRef: {name: \"\"}", []string{"credentialsRef.name credentialsbinding/credentials"}},
		"a backup of another API":                {"kind: Seed\nspec: {backup: {credentialsRef: {apiVersion: other/v1}}}", []string{"spec.backup.credentialsRef seed/credentials"}},
		"a version of a profile that is none":    {"kind: NamespacedCloudProfile\nspec: {kubernetes: {versions: [{version: \"1.34\", expirationDate: \"2027-01-01T00:00:00Z\"}]}}", []string{"spec.kubernetes.versions[0].version namespacedcloudprofile/only-adds"}},
		"a key that is none":                     {"kind: Project\nspec: {tolerations: {defaults: [{key: a b}]}}", []string{"spec.tolerations.defaults[0].key project/tolerations"}},
		"two faults of a name":                   {"kind: Project\nmetadata: {name: Long_enough}", []string{"metadata.name any/metadata", "metadata.name project/name"}},
		"a range from its middle that overlaps":  {"kind: Shoot\nspec: {networking: {pods: 10.10.5.1/16}}", []string{"spec.networking.pods shoot/network-ranges", "spec.networking.pods shoot/seed-networks"}},
		"an operation that there is not, in Git": {"kind: Shoot\nmetadata: {annotations: {gardener.cloud/operation: reconcil}}", []string{"metadata.annotations[gardener.cloud/operation] any/one-shot-operation"}},
	} {
		t.Run(name, func(t *testing.T) {
			var change map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(test.change), &change))
			e := ruleTest{Change: []map[string]any{change}}
			inputs := e.buildInputs(t)
			around := &schemas.LandscapeObjects{}
			for _, in := range inputs {
				around.Objects = append(around.Objects, in.Object)
			}
			found, err := schemas.Validate(t.Context(), inputs, schemas.Options{Landscape: around})
			require.NoError(t, err)
			found = append(found, Check(inputs, Options{Now: testTime})...)
			good := ruleTest{}.buildInputs(t)
			known, err := schemas.Validate(t.Context(), good, schemas.Options{})
			require.NoError(t, err)
			var told []string
			for _, v := range DropDuplicates(found) {
				if v.Kind == change["kind"] && !slices.ContainsFunc(known, func(k schemas.Violation) bool { return k.Field == v.Field && k.Rule == v.Rule && k.Kind == v.Kind }) {
					told = append(told, v.Field+" "+v.Rule)
				}
			}
			slices.Sort(told)
			assert.Equal(t, test.want, told)
		})
	}
}

// TestAmountAndChangeAreTwoFaults checks that a wrong amount and an ineffective change are two
// faults of a field.
func TestAmountAndChangeAreTwoFaults(t *testing.T) {
	amount := schemas.Violation{Severity: schemas.SeverityWarning, Kind: "Garden", Name: "a", Field: "spec.x.capacity", Type: schemas.TypeInvalid, Rule: "any/amounts", Message: "25 is 25 bytes"}
	made := amount
	made.Rule, made.Message = "garden/etcd-storage-made", "has no effect on the volumes"
	assert.Equal(t, []schemas.Violation{amount, made}, DropDuplicates([]schemas.Violation{amount, made}))
	refused := made
	refused.Severity, refused.Rule, refused.Message = schemas.SeverityError, "garden/amounts", "25 is no amount"
	assert.Equal(t, []schemas.Violation{refused}, DropDuplicates([]schemas.Violation{amount, refused}), "an error about the value says more")
}
