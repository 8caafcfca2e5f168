// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/pergola-dev/pergola/api/crds"
	"github.com/pergola-dev/pergola/schemas"
)

// resourcesOf returns the resources of rules as GROUP/VERSION/RESOURCE.
func resourcesOf(rules []admissionregistrationv1.RuleWithOperations) []string {
	var result []string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, version := range rule.APIVersions {
				for _, resource := range rule.Resources {
					result = append(result, group+"/"+version+"/"+resource)
				}
			}
		}
	}
	return result
}

func TestConfigurations(t *testing.T) {
	target := Target{URL: "https://127.0.0.1:2750/", CABundle: []byte("ca")}
	var validated, defaulted []string
	for _, cluster := range []Cluster{ClusterRuntime, ClusterVirtual} {
		validating, err := ValidatingWebhookConfiguration(cluster, target)
		require.NoError(t, err)
		mutating, err := MutatingWebhookConfiguration(cluster, target)
		require.NoError(t, err)
		assert.Equal(t, "pergola-admission-controller-"+string(cluster), validating.Name)
		assert.Equal(t, validating.Name, mutating.Name)
		for _, webhook := range validating.Webhooks {
			assert.Equal(t, "https://127.0.0.1:2750/validate", *webhook.ClientConfig.URL)
			assert.Equal(t, admissionregistrationv1.Fail, *webhook.FailurePolicy)
			assert.EqualValues(t, 10, *webhook.TimeoutSeconds)
			assert.Equal(t, admissionregistrationv1.SideEffectClassNone, *webhook.SideEffects)
			assert.Equal(t, admissionregistrationv1.Equivalent, *webhook.MatchPolicy)
			validated = append(validated, resourcesOf(webhook.Rules)...)
		}
		for _, webhook := range mutating.Webhooks {
			assert.Equal(t, "https://127.0.0.1:2750/default", *webhook.ClientConfig.URL)
			assert.Equal(t, admissionregistrationv1.Fail, *webhook.FailurePolicy)
			defaulted = append(defaulted, resourcesOf(webhook.Rules)...)
		}
	}
	want := []string{"/v1/namespaces"}
	for _, gvk := range schemas.KnownKinds() {
		if gvk.Group != "" {
			want = append(want, gvk.Group+"/"+gvk.Version+"/"+crds.Get(gvk.Group, gvk.Kind).Spec.Names.Plural)
		}
	}
	assert.ElementsMatch(t, want, validated, "exactly the kinds that have rules, and no Secrets and ConfigMaps")
	slices.Sort(defaulted)
	const core, seedmanagement, security = "core.gardener.cloud/v1beta1/", "seedmanagement.gardener.cloud/v1alpha1/", "security.gardener.cloud/v1alpha1/"
	assert.Equal(t, []string{
		core + "backupbuckets", core + "backupentries", core + "cloudprofiles", core + "controllerregistrations", core + "namespacedcloudprofiles",
		core + "projects", core + "secretbindings", core + "seeds", core + "shoots",
		"operations.gardener.cloud/v1alpha1/bastions", "operator.gardener.cloud/v1alpha1/gardens", security + "credentialsbindings", security + "workloadidentities",
		seedmanagement + "gardenlets", seedmanagement + "managedseeds", seedmanagement + "managedseedsets",
	}, defaulted)
}

// TestNamespacesAreNotLocked: the webhook only covers the deletion of namespace garden.
func TestNamespacesAreNotLocked(t *testing.T) {
	config, err := ValidatingWebhookConfiguration(ClusterRuntime, Target{URL: "https://a"})
	require.NoError(t, err)
	webhook := config.Webhooks[len(config.Webhooks)-1]
	assert.Equal(t, []string{"/v1/namespaces"}, resourcesOf(webhook.Rules))
	assert.Equal(t, []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}, webhook.Rules[0].Operations)
	assert.Equal(t, map[string]string{"kubernetes.io/metadata.name": "garden"}, webhook.NamespaceSelector.MatchLabels)
	virtual, err := ValidatingWebhookConfiguration(ClusterVirtual, Target{URL: "https://a"})
	require.NoError(t, err)
	assert.Len(t, virtual.Webhooks, 1)
}

func TestTargetClientConfig(t *testing.T) {
	service := &admissionregistrationv1.ServiceReference{Namespace: "garden", Name: "a"}
	config, err := MutatingWebhookConfiguration(ClusterVirtual, Target{Service: service})
	require.NoError(t, err)
	assert.Equal(t, PathDefault, *config.Webhooks[0].ClientConfig.Service.Path)
	assert.Nil(t, service.Path)
	for name, target := range map[string]Target{
		"none": {}, "both": {URL: "https://a", Service: service}, "no TLS": {URL: "http://a"}, "a path": {URL: "https://a/b"},
		"a user": {URL: "https://a:b@c"}, "a query": {URL: "https://a?b"}, "no URL": {URL: "https://%"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ValidatingWebhookConfiguration(ClusterRuntime, target)
			assert.Error(t, err)
		})
	}
	_, err = ValidatingWebhookConfiguration("other", Target{URL: "https://a"})
	assert.ErrorContains(t, err, "runtime or virtual")
}
