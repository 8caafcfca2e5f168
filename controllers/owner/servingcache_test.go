// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	resourcesv1alpha1 "github.com/pergola-dev/pergola/api/resources/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/render"
)

// shootSite is a Shoot with its own API server, which can be disconnected.
type shootSite struct {
	*testSite
	seed, shoot    kubernetes.Interface
	isDisconnected atomic.Bool
}

type severableTransport struct {
	next           http.RoundTripper
	isDisconnected *atomic.Bool
}

func (w severableTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.isDisconnected.Load() {
		return nil, context.DeadlineExceeded
	}
	return w.next.RoundTrip(r)
}

func newShootSite(t *testing.T, api *rest.Config) *shootSite {
	t.Helper()
	s := &shootSite{testSite: newSite(t)}
	var err error
	s.seed, err = kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	s.shoot, err = kubernetes.NewForConfig(api)
	require.NoError(t, err)
	config := rest.CopyConfig(api)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return severableTransport{next, &s.isDisconnected} })
	o := s.run.owner
	o.Input.Owner = render.Owner{Kind: Shoot, Namespace: "garden-test", Name: s.ns, ControlPlaneNamespace: s.ns}
	o.Input.Objects = map[string]map[string]any{Shoot: {"spec": map[string]any{"provider": map[string]any{}}}}
	o.Target, err = conventions.NewCluster(render.ShootCluster(o.Input.Owner), config, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(o.Target.Close)
	s.run.reconciler.Render = render.Options{Catalogue: components.FS}
	labels := map[string]string{"app": "kubernetes", "role": "apiserver"}
	_, err = s.seed.AppsV1().Deployments(s.ns).Create(s.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver", Labels: map[string]string{conventions.ManagedResourceKeys().ManagedByLabel: conventions.ManagedResourceKeys().ManagedByValue}},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-apiserver", Image: "kube-apiserver"}}}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.eventually("the Deployment is known", func() bool {
		_, err := o.Local.Get(s.ctx, apply.Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: s.ns, Name: "kube-apiserver"})
		return err == nil
	})
	return s
}

// newRun starts a new reconciliation.
func (s *shootSite) newRun() {
	s.run = &run{owner: s.run.owner, report: &Report{}, reconciler: s.run.reconciler}
}

// replacePod replaces the only pod of the API server by one with an address; none deletes it.
func (s *shootSite) replacePod(address string) {
	s.Helper()
	pods := s.seed.CoreV1().Pods(s.ns)
	err := pods.Delete(s.ctx, "kube-apiserver", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
	if !apierrors.IsNotFound(err) {
		require.NoError(s, err)
	}
	s.newRun()
	if address == "" {
		return
	}
	pod, err := pods.Create(s.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver", Labels: map[string]string{"app": "kubernetes", "role": "apiserver"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "kube-apiserver", Image: "kube-apiserver"}}}}, metav1.CreateOptions{})
	require.NoError(s, err)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}
	_, err = pods.UpdateStatus(s.ctx, pod, metav1.UpdateOptions{})
	require.NoError(s, err)
}

const (
	reachableAddress = "10.1.2.3"
	playedAddress    = "239.1.2.3"
)

// roleBindingBundle returns a bundle that grants users a role in the Shoot, like control plane
// components.
func (s *shootSite) roleBindingBundle(keep bool, users ...string) render.Bundle {
	b := render.Bundle{Name: "shoot-core-thing", Component: "shoot/thing", Owner: s.run.owner.Input.Owner, Cluster: render.ClusterShoot, Namespace: s.ns,
		Condition: "ControlPlaneHealthy", Delivery: render.Delivery{KeepObjects: keep}}
	for _, user := range users {
		b.Objects = append(b.Objects, render.Object{Unstructured: s.object(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NS},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ` + user + `}]}`)})
		b.Digest = render.Digest{Resolved: user}
	}
	s.run.owner.mu.Lock()
	s.run.owner.state.bundles = []render.Bundle{b}
	s.run.owner.mu.Unlock()
	return b
}

// boundUser returns the user with the role in the Shoot, empty for none.
func (s *shootSite) boundUser() string {
	s.Helper()
	found, err := s.shoot.RbacV1().ClusterRoleBindings().Get(s.ctx, s.ns, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	require.NoError(s, err)
	return found.Subjects[0].Name
}

func (s *shootSite) managedResource() *unstructured.Unstructured {
	s.Helper()
	found, err := s.resource("managedresources", s.ns).Get(s.ctx, "shoot-core-thing", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(s, err)
	return found
}

// bundleState returns the state of the bundle in `pergola status --components`.
func (s *shootSite) bundleState(b render.Bundle) BundleState {
	state := BundleState{State: StateHealthy}
	s.run.reconciler.inspectBundle(s.ctx, s.run.owner, b, &servingCache{}, &state)
	return state
}

// bundleCondition returns the condition of the bundle from care.
func (s *shootSite) bundleCondition(b render.Bundle) gardencorev1beta1.Condition {
	builder := condition.New(clock.RealClock{}, nil)
	failures := s.run.owner.currentState().failures
	return s.run.reconciler.componentCondition(s.ctx, s.run.owner, builder, commonStatus{}, builder.Initial("ControlPlaneHealthy"), []render.Bundle{b}, failures, &servingCache{})
}

// TestObjectsInAShootWaitForAPIServer checks that objects in a Shoot are applied while its API
// server is served, and wait otherwise.
func TestObjectsInAShootWaitForAPIServer(t *testing.T) {
	api := shootAPI(t)
	for name, test := range map[string]func(*shootSite){
		"somebody serves": func(s *shootSite) {
			s.replacePod(reachableAddress)
			b := s.roleBindingBundle(true, "one")
			assert.Equal(s, map[string]change.Action{s.ns: change.Create}, s.plan(b))
			s.mustApply(b)
			assert.Equal(s, "one", s.boundUser())
			assert.Equal(s, StateHealthy, s.bundleState(b).State)
			assert.Equal(s, gardencorev1beta1.ConditionTrue, s.bundleCondition(b).Status)
			assert.Empty(s, s.plan(b))
			found, err := s.shoot.RbacV1().ClusterRoleBindings().Get(s.ctx, s.ns, metav1.GetOptions{})
			require.NoError(s, err)
			assert.Equal(s, s.ns+"/shoot-core-thing", found.Annotations[resourcesv1alpha1.Origin])
		},
		"nobody serves, then somebody does": func(s *shootSite) {
			for _, address := range []string{"", playedAddress} {
				s.replacePod(address)
				b := s.roleBindingBundle(true, "one")
				s.mustApply(b)
				require.NotNil(s, s.managedResource())
				assert.Empty(s, s.managedResource().GetFinalizers())
				assert.Empty(s, s.boundUser())
				assert.Equal(s, map[string]change.Action{s.ns: change.Create}, s.plan(b))
				state := s.bundleState(b)
				assert.Equal(s, StateWaiting, state.State)
				assert.Contains(s, state.Message, "nothing serves the API server of the Shoot: no pod of it has a reachable address (played pods never have one); not applied until that changes: ClusterRoleBinding")
				assert.Equal(s, "ControlPlaneRunning", s.bundleCondition(b).Reason)
				require.NoError(s, s.run.reconciler.applyWaiting(s.ctx, s.run.owner))
				assert.Empty(s, s.boundUser())
			}
			s.replacePod(reachableAddress)
			b := s.run.owner.Bundles()[0]
			require.NoError(s, s.run.reconciler.applyWaiting(s.ctx, s.run.owner))
			assert.Equal(s, "one", s.boundUser())
			assert.Equal(s, StateHealthy, s.bundleState(b).State)
			before := s.run.owner.Local.Requests()
			require.NoError(s, s.run.reconciler.applyWaiting(s.ctx, s.run.owner))
			assert.Equal(s, before, s.run.owner.Local.Requests(), "nothing waits any more")
		},
		"a later reconciliation finds out": func(s *shootSite) {
			b := s.roleBindingBundle(true, "one")
			s.mustApply(b)
			s.replacePod(reachableAddress)
			s.mustApply(b)
			assert.Equal(s, "one", s.boundUser())
			assert.Empty(s, s.run.owner.currentState().waitingBundles)
		},
		"hibernation": func(s *shootSite) {
			s.replacePod(reachableAddress)
			s.mustApply(s.roleBindingBundle(true, "one"))
			s.isDisconnected.Store(true)
			s.replacePod("")
			s.run.owner.Input.Objects = map[string]map[string]any{Shoot: {"spec": map[string]any{"provider": map[string]any{}, "hibernation": map[string]any{"enabled": true}}}}
			same := s.roleBindingBundle(true, "one")
			assert.Empty(s, s.plan(same), "it is there already")
			s.mustApply(same)
			state := s.bundleState(same)
			assert.Equal(s, StateWaiting, state.State)
			assert.Equal(s, "the Shoot is hibernated: nothing serves its API server; its applied objects are judged once that changes", state.Message)
			b := s.roleBindingBundle(true, "two")
			assert.Equal(s, map[string]change.Action{s.ns: change.Change}, s.plan(b))
			s.mustApply(b)
			assert.Equal(s, gardencorev1beta1.ConditionTrue, s.bundleCondition(b).Status)
			assert.Equal(s, "one", s.boundUser())
			s.isDisconnected.Store(false)
			s.replacePod(reachableAddress)
			s.eventually("the target is asked again", func() bool { return apiServerHealthy(s.ctx, s.run.owner.Target) == nil })
			require.NoError(s, s.run.reconciler.applyWaiting(s.ctx, s.run.owner))
			assert.Equal(s, "two", s.boundUser())
		},
		"pods that are to go": func(s *shootSite) {
			s.replacePod(reachableAddress)
			scale := func(replicas string) {
				_, err := s.seed.AppsV1().Deployments(s.ns).Patch(s.ctx, "kube-apiserver", types.MergePatchType, []byte(`{"spec": {"replicas": `+replicas+`}}`), metav1.PatchOptions{})
				require.NoError(s, err)
				s.newRun()
			}
			scale("0")
			s.eventually("the Deployment is asleep", func() bool {
				served, err := s.run.owner.isServed(s.ctx)
				return err == nil && !served
			})
			s.mustApply(s.roleBindingBundle(true, "one"))
			assert.Empty(s, s.boundUser())
			scale("1")
			s.eventually("it wakes up", func() bool {
				require.NoError(s, s.run.reconciler.applyWaiting(s.ctx, s.run.owner))
				return s.boundUser() == "one"
			})
		},
		"drift is repaired": func(s *shootSite) {
			s.replacePod(reachableAddress)
			s.mustApply(s.roleBindingBundle(true, "one"))
			found := make(chan apply.DriftEvent, 1)
			go s.run.reconciler.Engine.WatchDrift(s.ctx, s.run.owner.Target, func(e apply.DriftEvent) { found <- e })
			require.NoError(s, s.shoot.RbacV1().ClusterRoleBindings().Delete(s.ctx, s.ns, metav1.DeleteOptions{}))
			select {
			case e := <-found:
				assert.Equal(s, "shoot garden-test/"+s.ns, e.Cluster)
				_, is, err := s.run.reconciler.repair(s.ctx, s.run.owner, e.Set)
				require.NoError(s, err)
				assert.True(s, is)
			case <-s.ctx.Done():
				s.Error("nobody told of it")
			}
			assert.Equal(s, "one", s.boundUser())
		},
		"another process watches it": func(s *shootSite) {
			s.replacePod(reachableAddress)
			s.mustApply(s.roleBindingBundle(true, "one"))
			s.run.reconciler.Engine = conventions.NewEngine(apply.Options{})
			s.newRun()
			s.run.trackUnprocessedBundles(s.ctx)
			require.NoError(s, s.shoot.RbacV1().ClusterRoleBindings().Delete(s.ctx, s.ns, metav1.DeleteOptions{}))
			found := make(chan apply.DriftEvent, 8)
			go s.run.reconciler.Engine.WatchDrift(s.ctx, s.run.owner.Target, func(e apply.DriftEvent) { found <- e })
			select {
			case e := <-found:
				assert.Equal(s, s.ns+"/shoot-core-thing", e.Set)
			case <-s.ctx.Done():
				s.Error("nobody told of it")
			}
		},
		"what is not served is not watched": func(s *shootSite) {
			s.mustApply(s.roleBindingBundle(true, "one"))
			s.isDisconnected.Store(true)
			began := time.Now()
			s.run.trackUnprocessedBundles(s.ctx)
			assert.Less(s, time.Since(began), 2*time.Second)
			assert.Empty(s, s.run.owner.Target.Requests())
		},
		"somebody serves and does not answer": func(s *shootSite) {
			s.replacePod(reachableAddress)
			s.isDisconnected.Store(true)
			b := s.roleBindingBundle(true, "one")
			s.run.waitForAPIServer = true
			before := s.ctx
			var cancel context.CancelFunc
			s.ctx, cancel = context.WithTimeout(before, 2*time.Second)
			defer cancel()
			_, err := s.apply(b)
			s.ctx = before
			require.Error(s, err)
			assert.Contains(s, err.Error(), "bundle shoot-core-thing: the API server of shoot garden-test/"+s.ns+" does not answer: cluster shoot garden-test/"+s.ns+": ")
			assert.Empty(s, s.run.owner.currentState().waitingBundles)
			assert.Contains(s, s.bundleCondition(b).Message, "does not answer")
		},
		"goes, and its objects stay": func(s *shootSite) {
			s.replacePod(reachableAddress)
			s.mustApply(s.roleBindingBundle(true, "one"))
			s.isDisconnected.Store(true)
			s.replacePod("")
			s.run.owner.state.bundles = nil
			require.NoError(s, s.run.removeOrphans(s.ctx, nil))
			assert.Nil(s, s.managedResource())
			assert.Equal(s, "one", s.boundUser())
			left, err := s.run.reconciler.orphans(s.ctx, s.run.owner, nil)
			require.NoError(s, err)
			assert.Empty(s, left)
		},
		"goes, and nothing of it ever was in the Shoot": func(s *shootSite) {
			s.mustApply(s.roleBindingBundle(false, "one"))
			s.run.owner.state.bundles = nil
			require.NoError(s, s.run.removeOrphans(s.ctx, nil))
			assert.Nil(s, s.managedResource())
		},
		"goes when somebody serves": func(s *shootSite) {
			s.run.reconciler.Gate = permit.Gate{MaxDeletions: permit.Limit(10), MaxShare: permit.Limit(100)}
			s.replacePod(reachableAddress)
			s.mustApply(s.roleBindingBundle(false, "one"))
			s.isDisconnected.Store(true)
			s.replacePod("")
			s.run.owner.state.bundles = nil
			require.NoError(s, s.run.removeOrphans(s.ctx, nil))
			require.NotNil(s, s.managedResource())
			assert.Nil(s, s.managedResource().GetDeletionTimestamp())
			items, err := s.run.reconciler.planOrphans(s.ctx, s.run.owner, nil, &servingCache{})
			require.NoError(s, err)
			require.Len(s, items, 1)
			assert.Equal(s, change.Delete, items[0].Action)
			assert.Contains(s, items[0].Reason, "it is deleted once the API server of the Shoot is served")
			s.isDisconnected.Store(false)
			s.replacePod(reachableAddress)
			s.eventually("the target is asked again", func() bool { return apiServerHealthy(s.ctx, s.run.owner.Target) == nil })
			require.NoError(s, s.run.removeOrphans(s.ctx, nil))
			assert.Nil(s, s.managedResource())
			assert.Empty(s, s.boundUser())
		},
		"the namespace of the control plane is deleted": func(s *shootSite) {
			s.replacePod(reachableAddress)
			s.mustApply(s.roleBindingBundle(false, "one"))
			other := s.object("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, spec: {secretRefs: []}, metadata: {name: other, namespace: NS, " +
				"finalizers: [resources.gardener.cloud/gardener-resource-manager], labels: {" + conventions.ManagedResourceKeys().ManagedByLabel + ": " + conventions.ManagedResourceKeys().ManagedByValue + "}}}")
			_, err := s.resource("managedresources", s.ns).Create(s.ctx, other, metav1.CreateOptions{})
			require.NoError(s, err)
			s.isDisconnected.Store(true)
			for _, name := range []string{"shoot-core-thing", "other"} {
				require.NoError(s, s.resource("managedresources", s.ns).Delete(s.ctx, name, metav1.DeleteOptions{}))
			}
			s.eventually("it is known that it goes", func() bool {
				live, err := s.run.owner.Local.Get(s.ctx, bundleManagedResourceRef(s.run.owner.Bundles()[0]))
				return err == nil && live.GetDeletionTimestamp() != nil
			})
			require.NoError(s, s.run.reconciler.ReleaseTerminating(s.ctx, s.run.owner.Local))
			assert.NotNil(s, s.managedResource(), "its namespace stays")
			require.NoError(s, s.seed.CoreV1().Namespaces().Delete(s.ctx, s.ns, metav1.DeleteOptions{}))
			assert.Error(s, s.run.ensureNamespace(s.ctx))
			assert.Nil(s, s.managedResource())
			_, err = s.resource("managedresources", s.ns).Get(s.ctx, "other", metav1.GetOptions{})
			assert.NoError(s, err, "somebody else's")
			assert.Equal(s, "one", s.boundUser())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShootSite(t, api)
			t.Cleanup(func() {
				_ = s.shoot.RbacV1().ClusterRoleBindings().Delete(context.Background(), s.ns, metav1.DeleteOptions{})
			})
			s.TB = t
			test(s)
		})
	}
}
