// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNoOperatorRuns: a stopped operator is reported at once, before its lease expires.
func TestNoOperatorRuns(t *testing.T) {
	c, kubeconfig := testServer(t)
	require.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}))
	l := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "landscape.pergola.dev/v1alpha1", "kind": "Landscape",
		"metadata": map[string]any{"name": "one", "namespace": "garden"}, "spec": map[string]any{"source": map[string]any{"url": "https://git.example.org/a.git"}}}}
	require.NoError(t, c.Create(t.Context(), l))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "gardener-operator-leader-election", Namespace: "garden"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("operator-1"), RenewTime: ptr.To(metav1.NewMicroTime(time.Now()))}}
	require.NoError(t, c.Create(t.Context(), lease))
	const gone = "no operator runs: its lease garden/gardener-operator-leader-election was released "

	got := pergola(t, "history", "one", "--kubeconfig", kubeconfig)
	assert.Equal(t, 0, got.code, got)
	assert.NotContains(t, got.stdout, "no operator")
	assert.Equal(t, 0, pergola(t, "sync", "one", "--follow=false", "--kubeconfig", kubeconfig).code)

	lease.Spec.HolderIdentity, lease.Spec.RenewTime = nil, ptr.To(metav1.NewMicroTime(time.Now()))
	require.NoError(t, c.Update(t.Context(), lease))
	got = pergola(t, "history", "one", "--kubeconfig", kubeconfig)
	assert.Contains(t, got.stdout, gone)
	assert.Contains(t, got.stdout, "scale deployment pergola-operator")
	assert.Contains(t, pergola(t, "history", "one", "-o", "json", "--kubeconfig", kubeconfig).stdout, `"operatorSilent": {`)
	// history also shows an unreadable source, and exits with a finding.
	require.NotContains(t, got.stdout, "SOURCE")
	require.Equal(t, 0, got.code)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(l), l))
	l.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "SourceReady", "status": "False", "reason": "HostKeyUnknown", "message": "the host key is unknown",
		"lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}}}
	require.NoError(t, c.Status().Update(t.Context(), l))
	got = pergola(t, "history", "one", "--kubeconfig", kubeconfig)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stdout, "(HostKeyUnknown): the host key is unknown")
	assert.Contains(t, pergola(t, "history", "one", "-o", "json", "--kubeconfig", kubeconfig).stdout, `"sourceFailure": "cannot be read since `)

	got = pergola(t, "sync", "one", "--kubeconfig", kubeconfig)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, gone)
}
