// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/render"
)

// webhookSite is an owner with a bundle whose webhooks Deployment hooks serves.
type webhookSite struct {
	*testSite
	client kubernetes.Interface
}

func newWebhookSite(t *testing.T) *webhookSite {
	t.Helper()
	s := &webhookSite{testSite: newSite(t)}
	var err error
	s.client, err = kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	return s
}

// createDeployment creates Deployment hooks, and waits until the owner's cache has it.
func (s *webhookSite) createDeployment() {
	s.Helper()
	labels := map[string]string{"app": "hooks"}
	_, err := s.client.AppsV1().Deployments(s.ns).Create(s.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks", Labels: map[string]string{conventions.ManagedResourceKeys().ManagedByLabel: conventions.ManagedResourceKeys().ManagedByValue}},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "hooks", Image: "hooks"}}}}},
	}, metav1.CreateOptions{})
	require.NoError(s, err)
	s.eventually("the Deployment is known", func() bool {
		_, err := s.run.owner.Local.Get(s.ctx, apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: s.ns, Name: "hooks"})
		return err == nil
	})
	s.newRun()
}

// newRun starts a new reconciliation.
func (s *webhookSite) newRun() {
	s.run = &run{owner: s.run.owner, report: &Report{}, reconciler: s.run.reconciler}
}

// replacePod replaces the only pod of the Deployment, and starts a new reconciliation.
func (s *webhookSite) replacePod(address string, ready corev1.ConditionStatus) {
	s.Helper()
	pods := s.client.CoreV1().Pods(s.ns)
	err := pods.Delete(s.ctx, "hooks", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
	if !apierrors.IsNotFound(err) {
		require.NoError(s, err)
	}
	pod, err := pods.Create(s.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "hooks", Labels: map[string]string{"app": "hooks"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "hooks", Image: "hooks"}}}}, metav1.CreateOptions{})
	require.NoError(s, err)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
	_, err = pods.UpdateStatus(s.ctx, pod, metav1.UpdateOptions{})
	require.NoError(s, err)
	s.newRun()
}

// webhookBundle returns the bundle; its ConfigMap represents the webhook configuration.
func (s *webhookSite) webhookBundle(direct bool, name string) render.Bundle {
	b := s.bundle(direct, s.configMap(name))
	b.Delivery.ServedBy = "hooks"
	b.Digest = render.Digest{Resolved: name}
	s.run.owner.state.bundles = []render.Bundle{b}
	return b
}

func (s *webhookSite) hasConfigMap(name string) bool {
	s.Helper()
	_, err := s.resource("configmaps", s.ns).Get(s.ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(s, err)
	}
	return err == nil
}

func (s *webhookSite) requireWaiting(b render.Bundle) {
	s.Helper()
	state := BundleState{State: StateHealthy}
	s.run.reconciler.inspectBundle(s.ctx, s.run.owner, b, &servingCache{}, &state)
	assert.Equal(s, StateWaiting, state.State)
	assert.Contains(s, state.Message, "nothing answers its webhooks: Deployment "+s.ns+"/hooks has no ready pod with a reachable address")
}

// TestWebhooksWaitForReadyPod checks that webhooks that fail closed are registered only once a pod
// serves them.
func TestWebhooksWaitForReadyPod(t *testing.T) {
	for name, direct := range map[string]bool{"a ManagedResource": false, "direct": true} {
		t.Run(name, func(t *testing.T) {
			s := newWebhookSite(t)
			b := s.webhookBundle(direct, "one")
			still := func() {
				t.Helper()
				s.mustApply(b)
				require.NoError(t, s.run.reconciler.applyWaiting(s.ctx, s.run.owner))
				assert.False(t, s.hasConfigMap("one"))
				_, err := s.resource("managedresources", s.ns).Get(s.ctx, b.Name, metav1.GetOptions{})
				assert.True(t, apierrors.IsNotFound(err), "another resource-manager would apply it: %v", err)
				s.requireWaiting(b)
				assert.Equal(t, map[string]change.Action{"one": change.Create}, s.plan(b))
			}
			still() // no Deployment
			s.createDeployment()
			still() // no pod
			s.replacePod(playedAddress, corev1.ConditionTrue)
			still()
			s.replacePod(reachableAddress, corev1.ConditionFalse)
			still()
			s.replacePod(reachableAddress, corev1.ConditionTrue)
			require.NoError(t, s.run.reconciler.applyWaiting(s.ctx, s.run.owner))
			assert.True(t, s.hasConfigMap("one"))
			assert.Empty(t, s.run.owner.currentState().waitingBundles)
			assert.Empty(t, s.plan(b))

			// Without a ready pod, the registered webhooks stay, and a change waits.
			s.replacePod(reachableAddress, corev1.ConditionFalse)
			b = s.webhookBundle(direct, "two")
			s.mustApply(b)
			assert.True(t, s.hasConfigMap("one"))
			assert.False(t, s.hasConfigMap("two"))
			s.requireWaiting(b)
		})
	}
}

// TestUnservedWebhooksAreNotRepaired checks that deleted webhooks without a server are restored
// only once a pod serves them.
func TestUnservedWebhooksAreNotRepaired(t *testing.T) {
	s := newWebhookSite(t)
	s.createDeployment()
	s.replacePod(reachableAddress, corev1.ConditionTrue)
	b := s.webhookBundle(false, "one")
	s.mustApply(b)
	s.replacePod(reachableAddress, corev1.ConditionFalse)
	found := make(chan apply.DriftEvent, 8)
	go s.run.reconciler.Engine.WatchDrift(s.ctx, s.run.owner.Local, func(e apply.DriftEvent) { found <- e })
	require.NoError(t, s.resource("configmaps", s.ns).Delete(s.ctx, "one", metav1.DeleteOptions{}))
	select {
	case e := <-found:
		_, is, err := s.run.reconciler.repair(s.ctx, s.run.owner, e.Set)
		require.NoError(t, err)
		assert.True(t, is)
	case <-s.ctx.Done():
		t.Fatal("nobody told of it")
	}
	assert.False(t, s.hasConfigMap("one"))
	s.requireWaiting(b)
	s.replacePod(reachableAddress, corev1.ConditionTrue)
	require.NoError(t, s.run.reconciler.applyWaiting(s.ctx, s.run.owner))
	assert.True(t, s.hasConfigMap("one"))
}

// TestBundleWithUnservedWebhooksIsDeleted checks that a bundle can be deleted without a server for
// its webhooks.
func TestBundleWithUnservedWebhooksIsDeleted(t *testing.T) {
	s := newWebhookSite(t)
	s.run.reconciler.Render = render.Options{Catalogue: components.FS}
	s.run.reconciler.Gate = permit.Gate{MaxDeletions: permit.Limit(10), MaxShare: permit.Limit(100)}
	s.createDeployment()
	s.replacePod(reachableAddress, corev1.ConditionTrue)
	s.mustApply(s.webhookBundle(false, "one"))
	s.replacePod(reachableAddress, corev1.ConditionFalse)
	s.run.owner.state.bundles = nil
	require.NoError(t, s.run.removeOrphans(s.ctx, nil))
	assert.False(t, s.hasConfigMap("one"))
}
