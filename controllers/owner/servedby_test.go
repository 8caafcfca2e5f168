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

// hookSite is an owner with a bundle whose webhooks Deployment hooks serves.
type hookSite struct {
	*site
	client kubernetes.Interface
}

func newHookSite(t *testing.T) *hookSite {
	t.Helper()
	s := &hookSite{site: newSite(t)}
	var err error
	s.client, err = kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	return s
}

// deployment creates Deployment hooks, and waits until the owner's cache has it.
func (s *hookSite) deployment() {
	s.Helper()
	labels := map[string]string{"app": "hooks"}
	_, err := s.client.AppsV1().Deployments(s.ns).Create(s.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks", Labels: map[string]string{conventions.Keys().ManagedByLabel: conventions.Keys().ManagedByValue}},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "hooks", Image: "hooks"}}}}},
	}, metav1.CreateOptions{})
	require.NoError(s, err)
	s.eventually("the Deployment is known", func() bool {
		_, err := s.work.owner.Local.Get(s.ctx, apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: s.ns, Name: "hooks"})
		return err == nil
	})
	s.anew()
}

// anew starts a new reconciliation.
func (s *hookSite) anew() {
	s.work = &run{owner: s.work.owner, report: &Report{}, reconciler: s.work.reconciler}
}

// pod replaces the only pod of the Deployment, and starts a new reconciliation.
func (s *hookSite) pod(address string, ready corev1.ConditionStatus) {
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
	s.anew()
}

// hooks returns the bundle; its ConfigMap represents the webhook configuration.
func (s *hookSite) hooks(direct bool, name string) render.Bundle {
	b := s.bundle(direct, s.configMap(name))
	b.Delivery.ServedBy = "hooks"
	b.Digest = render.Digest{Resolved: name}
	s.work.owner.last.bundles = []render.Bundle{b}
	return b
}

func (s *hookSite) has(name string) bool {
	s.Helper()
	_, err := s.resource("configmaps", s.ns).Get(s.ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(s, err)
	}
	return err == nil
}

func (s *hookSite) waits(b render.Bundle) {
	s.Helper()
	state := BundleState{State: StateHealthy}
	s.work.reconciler.inspectBundle(s.ctx, s.work.owner, b, &serving{}, &state)
	assert.Equal(s, StateWaiting, state.State)
	assert.Contains(s, state.Message, "nobody answers its webhooks: Deployment "+s.ns+"/hooks has no ready pod with an address that can be connected to")
}

// TestServedBy checks that webhooks that fail closed are registered only once a pod serves them.
func TestServedBy(t *testing.T) {
	for name, direct := range map[string]bool{"a ManagedResource": false, "direct": true} {
		t.Run(name, func(t *testing.T) {
			s := newHookSite(t)
			b := s.hooks(direct, "one")
			still := func() {
				t.Helper()
				s.mustApply(b)
				require.NoError(t, s.work.reconciler.applyWaiting(s.ctx, s.work.owner))
				assert.False(t, s.has("one"))
				_, err := s.resource("managedresources", s.ns).Get(s.ctx, b.Name, metav1.GetOptions{})
				assert.True(t, apierrors.IsNotFound(err), "another resource-manager would apply it: %v", err)
				s.waits(b)
				assert.Equal(t, map[string]change.Action{"one": change.Create}, s.plan(b))
			}
			still() // no Deployment
			s.deployment()
			still() // no pod
			s.pod(played, corev1.ConditionTrue)
			still()
			s.pod(reachable, corev1.ConditionFalse)
			still()
			s.pod(reachable, corev1.ConditionTrue)
			require.NoError(t, s.work.reconciler.applyWaiting(s.ctx, s.work.owner))
			assert.True(t, s.has("one"))
			assert.Empty(t, s.work.owner.now().waiting)
			assert.Empty(t, s.plan(b))

			// Without a ready pod, the registered webhooks stay, and a change waits.
			s.pod(reachable, corev1.ConditionFalse)
			b = s.hooks(direct, "two")
			s.mustApply(b)
			assert.True(t, s.has("one"))
			assert.False(t, s.has("two"))
			s.waits(b)
		})
	}
}

// TestServedByIsNotRepairedMeanwhile checks that deleted webhooks without a server are restored
// only once a pod serves them.
func TestServedByIsNotRepairedMeanwhile(t *testing.T) {
	s := newHookSite(t)
	s.deployment()
	s.pod(reachable, corev1.ConditionTrue)
	b := s.hooks(false, "one")
	s.mustApply(b)
	s.pod(reachable, corev1.ConditionFalse)
	found := make(chan apply.DriftEvent, 8)
	go s.work.reconciler.Engine.Watch(s.ctx, s.work.owner.Local, func(e apply.DriftEvent) { found <- e })
	require.NoError(t, s.resource("configmaps", s.ns).Delete(s.ctx, "one", metav1.DeleteOptions{}))
	select {
	case e := <-found:
		_, is, err := s.work.reconciler.repair(s.ctx, s.work.owner, e.Set)
		require.NoError(t, err)
		assert.True(t, is)
	case <-s.ctx.Done():
		t.Fatal("nobody told of it")
	}
	assert.False(t, s.has("one"))
	s.waits(b)
	s.pod(reachable, corev1.ConditionTrue)
	require.NoError(t, s.work.reconciler.applyWaiting(s.ctx, s.work.owner))
	assert.True(t, s.has("one"))
}

// TestServedByGoes checks that a bundle can be deleted without a server for its webhooks.
func TestServedByGoes(t *testing.T) {
	s := newHookSite(t)
	s.work.reconciler.Render = render.Options{Catalogue: components.FS}
	s.work.reconciler.Gate = permit.Gate{MaxDeletions: permit.Limit(10), MaxShare: permit.Limit(100)}
	s.deployment()
	s.pod(reachable, corev1.ConditionTrue)
	s.mustApply(s.hooks(false, "one"))
	s.pod(reachable, corev1.ConditionFalse)
	s.work.owner.last.bundles = nil
	require.NoError(t, s.work.removeOrphans(s.ctx, nil))
	assert.False(t, s.has("one"))
}
