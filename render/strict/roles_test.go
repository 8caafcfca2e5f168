// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/schemas/structure"
)

func TestRoles(t *testing.T) {
	const (
		core = "apiGroups: [''], resources: [pods], "
		read = ", verbs: [get]"
	)
	var defined []*Kind
	for kind, resource := range map[string]string{"Seed": "seeds", "Shoot": "shoots", "Perses": "perses", "Gateway": "gateways"} {
		gvk := schema.GroupVersionKind{Group: "core.gardener.cloud", Version: "v1beta1", Kind: kind}
		defined = append(defined, &Kind{Kind: &structure.Kind{GVK: gvk}, Resource: resource})
	}
	for name, tt := range map[string]struct{ rule, want string }{
		"verbs of Kubernetes":  {core + "verbs: [get, list, watch, create, update, patch, delete, deletecollection, use, bind, escalate, impersonate]", ""},
		"all verbs":            {core + "verbs: ['*']", ""},
		"verbs of Gardener":    {core + "verbs: [manage-members, modify-spec-tolerations-whitelist, mark-invisible]", ""},
		"two letters":          {core + "verbs: [get, gett]", `rules[0].verbs[1]: "gett" is not a verb of API requests; did you mean "get"?`},
		"a letter less":        {core + "verbs: [lst]", `did you mean "list"?`},
		"of another case":      {core + "verbs: [Watch]", `did you mean "watch"?`},
		"in two words":         {core + "verbs: [delete-collection]", `did you mean "deletecollection"?`},
		"swapped":              {core + "verbs: [udpate]", `did you mean "update"?`},
		"of a ClusterRole":     {core + "verbs: [craete]", `did you mean "create"?`},
		"APIs":                 {"apiGroups: ['', apps, batch, extensions, policy, autoscaling, '*', core.gardener.cloud, example.org], resources: ['*']" + read, ""},
		"an API of one's own":  {"apiGroups: [kyma], resources: [things]" + read, ""},
		"core/v1":              {"apiGroups: [core/v1], resources: [secrets]" + read, `rules[0].apiGroups[0]: "core/v1" is not an API group of requests: the group of Pods and Secrets is "", without a version`},
		"core":                 {"apiGroups: [apps, core], resources: [pods]" + read, `rules[0].apiGroups[1]: "core" is not an API`},
		"version only":         {"apiGroups: [v1], resources: [pods]" + read, `"v1" is not an API group of requests: the group of Pods`},
		"with a version":       {"apiGroups: [apps/v1], resources: [deployments]" + read, `"apps/v1" is not an API group of requests, because it has a version; write "apps"`},
		"beta":                 {"apiGroups: [core.gardener.cloud/v1beta1], resources: [shoots]" + read, `write "core.gardener.cloud"`},
		"an s less":            {"apiGroups: [app], resources: [deployments]" + read, `did you mean "apps"?`},
		"capital letter":       {"apiGroups: [Batch], resources: [jobs]" + read, `did you mean "batch"?`},
		"resources":            {"apiGroups: ['', networking.k8s.io], resources: [endpoints, pods/log, '*/scale', networkpolicies, ingresses]" + read, ""},
		"resources unknown":    {"apiGroups: [example.org], resources: [thing, sheep]" + read, ""},
		"metrics":              {"apiGroups: [external.metrics.k8s.io], resources: [Kafka.Lag]" + read, ""},
		"kind":                 {"apiGroups: [''], resources: [pods, Secret]" + read, `rules[0].resources[1]: "Secret" is not a resource of requests, which have plural names in lower case; did you mean "secrets"?`},
		"plural of a kind":     {"apiGroups: [apps], resources: [Deployments/scale]" + read, `did you mean "deployments/scale"?`},
		"singular":             {"apiGroups: [''], resources: [configmap]" + read, `did you mean "configmaps"?`},
		"another plural":       {"apiGroups: [networking.k8s.io], resources: [NetworkPolicy]" + read, `did you mean "networkpolicies"?`},
		"kind of a definition": {"apiGroups: [core.gardener.cloud], resources: [Shoot/status]" + read, `did you mean "shoots/status"?`},
		"singular of one":      {"apiGroups: [core.gardener.cloud], resources: [shoot]" + read, `did you mean "shoots"?`},
		"misspelt":             {"apiGroups: [apps], resources: [deploymnets/scale]" + read, `"deploymnets/scale" is not a resource of requests; did you mean "deployments/scale"?`},
		"misspelt definition":  {"apiGroups: [core.gardener.cloud], resources: [seedz]" + read, `did you mean "seeds"?`},
		"plural of its own":    {"apiGroups: [core.gardener.cloud], resources: [perses/status, gateways]" + read, ""},
		"impersonated":         {"apiGroups: ['', authentication.k8s.io], resources: [users, groups, userextras/team, uids], verbs: [impersonate]", ""},
		"in another API":       {"apiGroups: [''], resources: [pods, deployments/scale]" + read, `rules[0].resources[1]: "deployments/scale" is not a resource of the API "", but of "apps"`},
		"in neither of two":    {"apiGroups: [apps, batch], resources: [secrets]" + read, `"secrets" is not a resource of the API "apps, batch", but of ""`},
		"former API":           {"apiGroups: ['', extensions], resources: [ingresses, deployments]" + read, ""},
		"of another API":       {"apiGroups: [apps, ''], resources: [pods, replicasets]" + read, ""},
		"as kubectl has it":    {"apiGroups: [apps], resources: [deployments.apps]" + read, `"deployments.apps" is not a resource of requests; write "deployments", and "apps" in apiGroups`},
	} {
		t.Run(name, func(t *testing.T) {
			object := "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{" + tt.rule + "}]}"
			var content map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(object), &content))
			got := findingLines(CheckRole(content, func(group string) map[string]string {
				return Plurals(group, slices.Values(defined))
			}))
			if tt.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, tt.want)
		})
	}
}
