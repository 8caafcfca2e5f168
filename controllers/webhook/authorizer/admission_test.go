// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestRequesterOf(t *testing.T) {
	for _, test := range []struct {
		user   string
		groups []string
		want   Requester
	}{
		{"gardener.cloud:system:seed:a", []string{GroupSeeds}, Requester{Seed: "a", Gardenlet: true}},
		{"system:serviceaccount:garden:gardenlet-a", []string{groupAccounts, groupAccounts + ":garden"}, Requester{Seed: "a", Gardenlet: true}},
		{"system:serviceaccount:seed-a:extension-x", []string{groupAccounts, groupAccounts + ":seed-a"}, Requester{Seed: "a"}},
		{"gardener.cloud:system:shoot:garden-one:self", []string{GroupShoots}, Requester{Shoot: types.NamespacedName{Namespace: "garden-one", Name: "self"}, Gardenlet: true}},
		{"gardener.cloud:gardenadm:shoot:garden-one:self", []string{GroupShoots}, Requester{Shoot: types.NamespacedName{Namespace: "garden-one", Name: "self"}}},
		{"gardener.cloud:pergola", []string{"system:masters"}, Requester{}},
		{"gardener.cloud:system:seed:a", nil, Requester{}},
	} {
		assert.Equal(t, test.want, RequesterOf(test.user, test.groups), test.user)
	}
	assert.NotEmpty(t, RequesterOf("somebody", []string{GroupSeeds}).Problem)
}

// TestIsAllowed: authorizers do not know the name of a new object. Admission does, and only allows
// objects that belong to the user.
func TestIsAllowed(t *testing.T) {
	h := newGardenHandler(t, landscape)
	resource := func(text string) metav1.GroupVersionResource {
		name, group, _ := strings.Cut(text, ".")
		return metav1.GroupVersionResource{Group: group, Version: "v1", Resource: name}
	}
	for _, test := range []struct {
		operation                 admissionv1.Operation
		resource, namespace, name string
		a, b                      bool // whether the gardenlet of Seed a, of Seed b may
	}{
		{admissionv1.Create, "secrets", "garden-one", "s.kubeconfig", true, false},
		{admissionv1.Create, "secrets", "garden-two", "s.kubeconfig", false, true},
		{admissionv1.Create, "secrets", "garden-one", "anything", false, false},
		{admissionv1.Create, "secrets", "garden", "generated-bucket-uid-a", true, false},
		{admissionv1.Create, "secrets", "default", "s.kubeconfig", false, false},
		{admissionv1.Create, "configmaps", "garden-one", "s.ca-cluster", true, false},
		{admissionv1.Create, "internalsecrets.core.gardener.cloud", "garden-one", "s.ca-client", true, false},
		{admissionv1.Create, "shootstates.core.gardener.cloud", "garden-two", "s", false, true},
		{admissionv1.Create, "leases.coordination.k8s.io", "gardener-system-seed-lease", "a", true, false},
		{admissionv1.Create, "leases.coordination.k8s.io", "kube-system", "a", false, false},
		{admissionv1.Create, "serviceaccounts", "seed-b", "extension-y", false, true},
		{admissionv1.Create, "clusterrolebindings.rbac.authorization.k8s.io", "", "cluster-admin", false, false},
		{admissionv1.Create, "seeds.core.gardener.cloud", "", "a", true, false},
		{admissionv1.Update, "seeds.core.gardener.cloud", "", "b", false, true},
		{admissionv1.Delete, "backupbuckets.core.gardener.cloud", "", "uid-a", true, false},
		{admissionv1.Delete, "backupbuckets.core.gardener.cloud", "", "uid-self", false, false},
	} {
		request := &admissionv1.AdmissionRequest{Operation: test.operation, Resource: resource(test.resource), Namespace: test.namespace, Name: test.name}
		for seed, want := range map[string]bool{"a": test.a, "b": test.b} {
			may, why := h.IsAllowed(UserSeed+seed, []string{GroupSeeds}, request)
			assert.Equal(t, want, may, "%s: %+v", seed, test)
			assert.Equal(t, want, why == "", "%s: %+v: %s", seed, test, why)
		}
	}
	self := &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Resource: resource("gardenlets.seedmanagement.gardener.cloud"), Namespace: "garden-one", Name: "self-hosted-shoot-self"}
	may, _ := h.IsAllowed(gardenletSelf.User, gardenletSelf.Groups, self)
	assert.True(t, may)
	self.Name = "self-hosted-shoot-other"
	may, _ = h.IsAllowed(gardenletSelf.User, gardenletSelf.Groups, self)
	assert.False(t, may)
}
