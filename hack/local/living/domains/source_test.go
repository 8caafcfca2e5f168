// SPDX-License-Identifier: Apache-2.0

package domains

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"
)

func service(namespace, name, address string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: address}}
}

func TestResolve(t *testing.T) {
	garden := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Garden", "metadata": map[string]any{"name": "g"},
		"spec": map[string]any{"virtualCluster": map[string]any{"dns": map[string]any{"domains": []any{
			map[string]any{"name": "first.example.org", "provider": "p"}, map[string]any{"name": "second.example.org"},
		}}}},
	}}
	cluster := func(name, domain string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"shoot": map[string]any{"spec": map[string]any{"dns": map[string]any{"domain": domain}}}},
		}}
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{gardens: "GardenList", clusters: "ClusterList"},
		garden, cluster("shoot--a--b", "b.example.org"), cluster("shoot--a--none", ""))
	kube := kubefake.NewClientset(service("garden", "virtual-garden-kube-apiserver", "10.96.0.5"), service("shoot--a--b", "kube-apiserver", "10.96.0.6"))
	s := New(kube, client, clock.RealClock{}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	require.Eventually(t, func() bool {
		one, _ := s.Resolve("api.first.example.org.")
		other, _ := s.Resolve("api.b.example.org.")
		return len(one) == 1 && len(other) == 1
	}, 10*time.Second, 10*time.Millisecond)
	for name, want := range map[string]string{
		"api.second.example.org.": "10.96.0.5", "API.b.example.org.": "10.96.0.6", "b.example.org.": "", "api.example.org.": "", "api.": "", ".": "",
	} {
		records, exists := s.Resolve(name)
		assert.Equal(t, want != "", exists, name)
		if want != "" && assert.Len(t, records, 1, name) {
			assert.Equal(t, want, records[0].(*dns.A).A.String())
			assert.Equal(t, name, records[0].Header().Name)
		}
	}
	require.NoError(t, kube.CoreV1().Services("garden").Delete(t.Context(), "virtual-garden-kube-apiserver", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		records, exists := s.Resolve("api.first.example.org.")
		return exists && len(records) == 0
	}, 10*time.Second, 10*time.Millisecond, "the name is there, and leads nowhere")
}
