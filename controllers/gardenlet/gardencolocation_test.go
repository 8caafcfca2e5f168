// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pergola-dev/pergola/api/crds"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
)

// TestSeedInTheGardensCluster: in the Garden's runtime cluster, a gardenlet leaves shared objects
// to the Garden. It detects a Garden that exists when it starts.
func TestSeedInTheGardensCluster(t *testing.T) {
	p := newTestSeed(t)
	p.publish("main@1")
	alone := p.runGardenlet()
	inUse := func(value string) func() bool {
		return func() bool { return p.configMapValue("garden", "b-"+p.name, "seedIsGarden") == value }
	}
	p.eventually("a seed of its own has all", inUse("false"))
	policies := p.seed.Resource(schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}).Namespace("garden")
	denies := func() bool {
		_, err := policies.Get(p.ctx, "deny-all", metav1.GetOptions{})
		return err == nil
	}
	p.eventually("and the network policies of its namespaces", denies)
	private, err := policies.Get(p.ctx, "allow-to-private-networks", metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, fmt.Sprint(private.Object["spec"]), "10.3.0.0/16", "with the ranges of the Seed")
	require.NoError(t, alone.stop())

	require.NoError(t, policies.Delete(p.ctx, "deny-all", metav1.DeleteOptions{}))
	definitions := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crds.Get(operatorv1alpha1.SchemeGroupVersion.Group, "Garden")}}
	_, err = envtest.InstallCRDs(withoutRateLimit(servers.seed), definitions)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, envtest.UninstallCRDs(withoutRateLimit(servers.seed), definitions)) })
	garden := &unstructured.Unstructured{Object: map[string]any{"apiVersion": operatorv1alpha1.SchemeGroupVersion.String(), "kind": "Garden", "metadata": map[string]any{"name": "garden"}, "spec": map[string]any{
		"runtimeCluster": map[string]any{
			"ingress":    map[string]any{"domains": []any{map[string]any{"name": "ingress.example.org"}}, "controller": map[string]any{"kind": "nginx"}},
			"networking": map[string]any{"pods": []any{"10.1.0.0/16"}, "services": []any{"10.2.0.0/16"}}, "provider": map[string]any{}, "settings": map[string]any{},
		},
		"virtualCluster": map[string]any{
			"dns": map[string]any{"domains": []any{map[string]any{"name": "garden.example.org"}}}, "gardener": map[string]any{"clusterIdentity": "test"}, "kubernetes": map[string]any{"version": "1.34.1"},
			"maintenance": map[string]any{"timeWindow": map[string]any{"begin": "220000+0000", "end": "230000+0000"}}, "networking": map[string]any{"services": []any{"100.64.0.0/13"}},
		},
	}}}
	gardens := p.seed.Resource(operatorv1alpha1.SchemeGroupVersion.WithResource("gardens"))
	// The kind is served shortly after its definition is established.
	require.Eventually(t, func() bool {
		_, err = gardens.Create(p.ctx, garden, metav1.CreateOptions{})
		return err == nil
	}, 20*time.Second, 50*time.Millisecond, "%v", err)
	t.Cleanup(func() { _ = gardens.Delete(context.Background(), "garden", metav1.DeleteOptions{}) })
	p.runGardenlet()
	p.eventually("what is shared is the Garden's", inUse("true"))
	require.False(t, denies(), "the operator looks after the policies of namespaces there")
}
