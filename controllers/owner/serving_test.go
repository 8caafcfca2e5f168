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
	*site
	seed, shoot kubernetes.Interface
	cut         atomic.Bool
}

type wire struct {
	next http.RoundTripper
	cut  *atomic.Bool
}

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		return nil, context.DeadlineExceeded
	}
	return w.next.RoundTrip(r)
}

func newShootSite(t *testing.T, api *rest.Config) *shootSite {
	t.Helper()
	s := &shootSite{site: newSite(t)}
	var err error
	s.seed, err = kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	s.shoot, err = kubernetes.NewForConfig(api)
	require.NoError(t, err)
	config := rest.CopyConfig(api)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return wire{next, &s.cut} })
	o := s.work.owner
	o.Input.Owner = render.Owner{Kind: Shoot, Namespace: "garden-test", Name: s.ns, ControlPlaneNamespace: s.ns}
	o.Input.Objects = map[string]map[string]any{Shoot: {"spec": map[string]any{"provider": map[string]any{}}}}
	o.Target, err = conventions.NewCluster(render.ShootCluster(o.Input.Owner), config, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(o.Target.Close)
	s.work.reconciler.Render = render.Options{Catalogue: components.FS}
	labels := map[string]string{"app": "kubernetes", "role": "apiserver"}
	_, err = s.seed.AppsV1().Deployments(s.ns).Create(s.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver", Labels: map[string]string{conventions.Keys().ManagedByLabel: conventions.Keys().ManagedByValue}},
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

// anew starts a new reconciliation.
func (s *shootSite) anew() {
	s.work = &run{owner: s.work.owner, report: &Report{}, reconciler: s.work.reconciler}
}

// pod replaces the only pod of the API server by one with an address; none deletes it.
func (s *shootSite) pod(address string) {
	s.Helper()
	pods := s.seed.CoreV1().Pods(s.ns)
	err := pods.Delete(s.ctx, "kube-apiserver", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
	if !apierrors.IsNotFound(err) {
		require.NoError(s, err)
	}
	s.anew()
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
	reachable = "10.1.2.3"
	played    = "239.1.2.3"
)

// right returns a bundle that grants users a role in the Shoot, like control plane components.
func (s *shootSite) right(keep bool, users ...string) render.Bundle {
	b := render.Bundle{Name: "shoot-core-thing", Component: "shoot/thing", Owner: s.work.owner.Input.Owner, Cluster: render.ClusterShoot, Namespace: s.ns,
		Condition: "ControlPlaneHealthy", Delivery: render.Delivery{KeepObjects: keep}}
	for _, user := range users {
		b.Objects = append(b.Objects, render.Object{Unstructured: s.object(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NS},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: ` + user + `}]}`)})
		b.Digest = render.Digest{Resolved: user}
	}
	s.work.owner.mu.Lock()
	s.work.owner.last.bundles = []render.Bundle{b}
	s.work.owner.mu.Unlock()
	return b
}

// user returns the user with the role in the Shoot, empty for none.
func (s *shootSite) user() string {
	s.Helper()
	found, err := s.shoot.RbacV1().ClusterRoleBindings().Get(s.ctx, s.ns, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	require.NoError(s, err)
	return found.Subjects[0].Name
}

func (s *shootSite) managed() *unstructured.Unstructured {
	s.Helper()
	found, err := s.resource("managedresources", s.ns).Get(s.ctx, "shoot-core-thing", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(s, err)
	return found
}

// state returns the state of the bundle in `pergola status --components`.
func (s *shootSite) state(b render.Bundle) BundleState {
	state := BundleState{State: StateHealthy}
	s.work.reconciler.inspectBundle(s.ctx, s.work.owner, b, &serving{}, &state)
	return state
}

// judged returns the condition of the bundle from care.
func (s *shootSite) judged(b render.Bundle) gardencorev1beta1.Condition {
	builder := condition.New(clock.RealClock{}, nil)
	failures := s.work.owner.now().failures
	return s.work.reconciler.componentCondition(s.ctx, s.work.owner, builder, commonStatus{}, builder.Initial("ControlPlaneHealthy"), []render.Bundle{b}, failures, &serving{})
}

// TestIntoAShoot checks that objects in a Shoot are applied while its API server is served, and
// wait otherwise.
func TestIntoAShoot(t *testing.T) {
	api := shootAPI(t)
	for name, test := range map[string]func(*shootSite){
		"somebody serves": func(s *shootSite) {
			s.pod(reachable)
			b := s.right(true, "one")
			assert.Equal(s, map[string]change.Action{s.ns: change.Create}, s.plan(b))
			s.mustApply(b)
			assert.Equal(s, "one", s.user())
			assert.Equal(s, StateHealthy, s.state(b).State)
			assert.Equal(s, gardencorev1beta1.ConditionTrue, s.judged(b).Status)
			assert.Empty(s, s.plan(b))
			found, err := s.shoot.RbacV1().ClusterRoleBindings().Get(s.ctx, s.ns, metav1.GetOptions{})
			require.NoError(s, err)
			assert.Equal(s, s.ns+"/shoot-core-thing", found.Annotations[resourcesv1alpha1.Origin])
		},
		"nobody serves, then somebody does": func(s *shootSite) {
			for _, address := range []string{"", played} {
				s.pod(address)
				b := s.right(true, "one")
				s.mustApply(b)
				require.NotNil(s, s.managed())
				assert.Empty(s, s.managed().GetFinalizers())
				assert.Empty(s, s.user())
				assert.Equal(s, map[string]change.Action{s.ns: change.Create}, s.plan(b))
				state := s.state(b)
				assert.Equal(s, StateWaiting, state.State)
				assert.Contains(s, state.Message, "nobody serves the API server of the Shoot: it has no pod with an address that can be connected to, as where pods are only played; to be applied when somebody does: ClusterRoleBinding")
				assert.Equal(s, "ControlPlaneRunning", s.judged(b).Reason)
				require.NoError(s, s.work.reconciler.applyWaiting(s.ctx, s.work.owner))
				assert.Empty(s, s.user())
			}
			s.pod(reachable)
			b := s.work.owner.Bundles()[0]
			require.NoError(s, s.work.reconciler.applyWaiting(s.ctx, s.work.owner))
			assert.Equal(s, "one", s.user())
			assert.Equal(s, StateHealthy, s.state(b).State)
			before := s.work.owner.Local.Requests()
			require.NoError(s, s.work.reconciler.applyWaiting(s.ctx, s.work.owner))
			assert.Equal(s, before, s.work.owner.Local.Requests(), "nothing waits any more")
		},
		"a later reconciliation finds out": func(s *shootSite) {
			b := s.right(true, "one")
			s.mustApply(b)
			s.pod(reachable)
			s.mustApply(b)
			assert.Equal(s, "one", s.user())
			assert.Empty(s, s.work.owner.now().waiting)
		},
		"hibernation": func(s *shootSite) {
			s.pod(reachable)
			s.mustApply(s.right(true, "one"))
			s.cut.Store(true)
			s.pod("")
			s.work.owner.Input.Objects = map[string]map[string]any{Shoot: {"spec": map[string]any{"provider": map[string]any{}, "hibernation": map[string]any{"enabled": true}}}}
			same := s.right(true, "one")
			assert.Empty(s, s.plan(same), "it is there already")
			s.mustApply(same)
			state := s.state(same)
			assert.Equal(s, StateWaiting, state.State)
			assert.Equal(s, "the Shoot is hibernated: nobody serves its API server; what was applied before is judged when somebody does", state.Message)
			b := s.right(true, "two")
			assert.Equal(s, map[string]change.Action{s.ns: change.Change}, s.plan(b))
			s.mustApply(b)
			assert.Equal(s, gardencorev1beta1.ConditionTrue, s.judged(b).Status)
			assert.Equal(s, "one", s.user())
			s.cut.Store(false)
			s.pod(reachable)
			s.eventually("the target is asked again", func() bool { return apiServerHealthy(s.ctx, s.work.owner.Target) == nil })
			require.NoError(s, s.work.reconciler.applyWaiting(s.ctx, s.work.owner))
			assert.Equal(s, "two", s.user())
		},
		"pods that are to go": func(s *shootSite) {
			s.pod(reachable)
			scale := func(replicas string) {
				_, err := s.seed.AppsV1().Deployments(s.ns).Patch(s.ctx, "kube-apiserver", types.MergePatchType, []byte(`{"spec": {"replicas": `+replicas+`}}`), metav1.PatchOptions{})
				require.NoError(s, err)
				s.anew()
			}
			scale("0")
			s.eventually("the Deployment is asleep", func() bool {
				served, err := s.work.owner.isServed(s.ctx)
				return err == nil && !served
			})
			s.mustApply(s.right(true, "one"))
			assert.Empty(s, s.user())
			scale("1")
			s.eventually("it wakes up", func() bool {
				require.NoError(s, s.work.reconciler.applyWaiting(s.ctx, s.work.owner))
				return s.user() == "one"
			})
		},
		"drift is repaired": func(s *shootSite) {
			s.pod(reachable)
			s.mustApply(s.right(true, "one"))
			found := make(chan apply.DriftEvent, 1)
			go s.work.reconciler.Engine.Watch(s.ctx, s.work.owner.Target, func(e apply.DriftEvent) { found <- e })
			require.NoError(s, s.shoot.RbacV1().ClusterRoleBindings().Delete(s.ctx, s.ns, metav1.DeleteOptions{}))
			select {
			case e := <-found:
				assert.Equal(s, "shoot garden-test/"+s.ns, e.Cluster)
				_, is, err := s.work.reconciler.repair(s.ctx, s.work.owner, e.Set)
				require.NoError(s, err)
				assert.True(s, is)
			case <-s.ctx.Done():
				s.Error("nobody told of it")
			}
			assert.Equal(s, "one", s.user())
		},
		"another process watches it": func(s *shootSite) {
			s.pod(reachable)
			s.mustApply(s.right(true, "one"))
			s.work.reconciler.Engine = conventions.NewEngine(apply.Options{})
			s.anew()
			s.work.watchTheRest(s.ctx)
			require.NoError(s, s.shoot.RbacV1().ClusterRoleBindings().Delete(s.ctx, s.ns, metav1.DeleteOptions{}))
			found := make(chan apply.DriftEvent, 8)
			go s.work.reconciler.Engine.Watch(s.ctx, s.work.owner.Target, func(e apply.DriftEvent) { found <- e })
			select {
			case e := <-found:
				assert.Equal(s, s.ns+"/shoot-core-thing", e.Set)
			case <-s.ctx.Done():
				s.Error("nobody told of it")
			}
		},
		"what is not served is not watched": func(s *shootSite) {
			s.mustApply(s.right(true, "one"))
			s.cut.Store(true)
			began := time.Now()
			s.work.watchTheRest(s.ctx)
			assert.Less(s, time.Since(began), 2*time.Second)
			assert.Empty(s, s.work.owner.Target.Requests())
		},
		"somebody serves and does not answer": func(s *shootSite) {
			s.pod(reachable)
			s.cut.Store(true)
			b := s.right(true, "one")
			s.work.patient = true
			before := s.ctx
			var cancel context.CancelFunc
			s.ctx, cancel = context.WithTimeout(before, 2*time.Second)
			defer cancel()
			_, err := s.apply(b)
			s.ctx = before
			require.Error(s, err)
			assert.Contains(s, err.Error(), "bundle shoot-core-thing: the API server of shoot garden-test/"+s.ns+" does not answer: cluster shoot garden-test/"+s.ns+": ")
			assert.Empty(s, s.work.owner.now().waiting)
			assert.Contains(s, s.judged(b).Message, "does not answer")
		},
		"goes, and its objects stay": func(s *shootSite) {
			s.pod(reachable)
			s.mustApply(s.right(true, "one"))
			s.cut.Store(true)
			s.pod("")
			s.work.owner.last.bundles = nil
			require.NoError(s, s.work.removeOrphans(s.ctx, nil))
			assert.Nil(s, s.managed())
			assert.Equal(s, "one", s.user())
			left, err := s.work.reconciler.orphans(s.ctx, s.work.owner, nil)
			require.NoError(s, err)
			assert.Empty(s, left)
		},
		"goes, and nothing of it ever was in the Shoot": func(s *shootSite) {
			s.mustApply(s.right(false, "one"))
			s.work.owner.last.bundles = nil
			require.NoError(s, s.work.removeOrphans(s.ctx, nil))
			assert.Nil(s, s.managed())
		},
		"goes when somebody serves": func(s *shootSite) {
			s.work.reconciler.Gate = permit.Gate{MaxDeletions: permit.Limit(10), MaxShare: permit.Limit(100)}
			s.pod(reachable)
			s.mustApply(s.right(false, "one"))
			s.cut.Store(true)
			s.pod("")
			s.work.owner.last.bundles = nil
			require.NoError(s, s.work.removeOrphans(s.ctx, nil))
			require.NotNil(s, s.managed())
			assert.Nil(s, s.managed().GetDeletionTimestamp())
			items, err := s.work.reconciler.planOrphans(s.ctx, s.work.owner, nil, &serving{})
			require.NoError(s, err)
			require.Len(s, items, 1)
			assert.Equal(s, change.Delete, items[0].Action)
			assert.Contains(s, items[0].Reason, "it goes when somebody serves the API server of the Shoot")
			s.cut.Store(false)
			s.pod(reachable)
			s.eventually("the target is asked again", func() bool { return apiServerHealthy(s.ctx, s.work.owner.Target) == nil })
			require.NoError(s, s.work.removeOrphans(s.ctx, nil))
			assert.Nil(s, s.managed())
			assert.Empty(s, s.user())
		},
		"the namespace of the control plane is deleted": func(s *shootSite) {
			s.pod(reachable)
			s.mustApply(s.right(false, "one"))
			other := s.object("{apiVersion: resources.gardener.cloud/v1alpha1, kind: ManagedResource, spec: {secretRefs: []}, metadata: {name: other, namespace: NS, " +
				"finalizers: [resources.gardener.cloud/gardener-resource-manager], labels: {" + conventions.Keys().ManagedByLabel + ": " + conventions.Keys().ManagedByValue + "}}}")
			_, err := s.resource("managedresources", s.ns).Create(s.ctx, other, metav1.CreateOptions{})
			require.NoError(s, err)
			s.cut.Store(true)
			for _, name := range []string{"shoot-core-thing", "other"} {
				require.NoError(s, s.resource("managedresources", s.ns).Delete(s.ctx, name, metav1.DeleteOptions{}))
			}
			s.eventually("it is known that it goes", func() bool {
				live, err := s.work.owner.Local.Get(s.ctx, managedRef(s.work.owner.Bundles()[0]))
				return err == nil && live.GetDeletionTimestamp() != nil
			})
			require.NoError(s, s.work.reconciler.ReleaseLeaving(s.ctx, s.work.owner.Local))
			assert.NotNil(s, s.managed(), "its namespace stays")
			require.NoError(s, s.seed.CoreV1().Namespaces().Delete(s.ctx, s.ns, metav1.DeleteOptions{}))
			assert.Error(s, s.work.ensureNamespace(s.ctx))
			assert.Nil(s, s.managed())
			_, err = s.resource("managedresources", s.ns).Get(s.ctx, "other", metav1.GetOptions{})
			assert.NoError(s, err, "somebody else's")
			assert.Equal(s, "one", s.user())
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
