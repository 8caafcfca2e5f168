// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/apply/flow"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/health/condition"
	"github.com/pergola-dev/pergola/render"
)

// emptyCluster returns an API server that serves CustomResourceDefinitions and has none.
func emptyCluster(t *testing.T, name string) *apply.Cluster {
	t.Helper()
	answers := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": []}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "apiextensions.k8s.io", "versions": [{"groupVersion": "apiextensions.k8s.io/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "apiextensions.k8s.io/v1", "version": "v1"}}]}`,
		"/apis/apiextensions.k8s.io/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apiextensions.k8s.io/v1", "resources": [
			{"name": "customresourcedefinitions", "kind": "CustomResourceDefinition", "namespaced": false, "verbs": ["get", "list", "watch"]}]}`,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions": `{"kind": "CustomResourceDefinitionList", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"resourceVersion": "1"}, "items": []}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch text, known := answers[r.URL.Path]; {
		case r.URL.Query().Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusBadRequest)
		case r.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case known:
			_, _ = w.Write([]byte(text))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	c, err := conventions.NewCluster(name, &rest.Config{Host: server.URL}, apply.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// TestConditionsNameTheObject checks that a written condition names the object, like `status
// --live`.
func TestConditionsNameTheObject(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	bundle := func(name string, objects ...string) render.Bundle {
		b := render.Bundle{Name: name, Cluster: render.ClusterVirtual}
		b.Delivery.Direct = true
		for _, object := range objects {
			b.Objects = append(b.Objects, render.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": object},
			}}})
		}
		return b
	}
	o := &ownerSession{Owner: Owner{Input: render.Input{Owner: render.Owner{Kind: Garden, Name: "local"}}, Target: emptyCluster(t, "virtual")}}
	r := &Reconciler{Clock: clk}
	b := condition.New(clk, nil)
	for name, c := range map[string]struct {
		bundles  []render.Bundle
		failures map[string]string
		want     string
	}{
		"missing":     {[]render.Bundle{bundle("x", "plants.example.org", "trees.example.org")}, nil, "cluster virtual: CustomResourceDefinition plants.example.org: "},
		"not applied": {[]render.Bundle{bundle("x"), bundle("y")}, map[string]string{"y": strings.Repeat("long ", 1000)}, "long long "},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.componentCondition(t.Context(), o, b, commonStatus{}, b.Initial("VirtualComponentsHealthy"), c.bundles, c.failures, &servingCache{})
			assert.Equal(t, gardencorev1beta1.ConditionFalse, got.Status)
			require.Greater(t, len(got.Message), len(c.want), got.Message)
			assert.Equal(t, c.want, got.Message[:len(c.want)])
			assert.LessOrEqual(t, len([]rune(got.Message)), maxMessageLength)
		})
	}
}

func TestBundlesAreSortedByName(t *testing.T) {
	list := []BundleState{{Bundle: "b", Cluster: "runtime"}, {Bundle: "a", Cluster: "virtual"}, {Bundle: "a", Cluster: "runtime"}}
	sortBundles(list)
	assert.Equal(t, []BundleState{{Bundle: "a", Cluster: "runtime"}, {Bundle: "a", Cluster: "virtual"}, {Bundle: "b", Cluster: "runtime"}}, list)
}

// TestAPIServerOfAShoot checks that the API server of a Shoot is judged if a process serves it, and
// always after its first answer. A played API server is not reported as down.
func TestAPIServerOfAShoot(t *testing.T) {
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	defer answers.Close()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	defer refuses.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	before := []gardencorev1beta1.Condition{{Type: "APIServerAvailable", Status: gardencorev1beta1.ConditionTrue, Reason: "HealthzRequestSucceeded"}}
	for name, c := range map[string]struct {
		kind   string
		at     string
		asleep bool
		before []gardencorev1beta1.Condition
		served bool
		want   string
	}{
		"answers":                     {Shoot, answers.URL, false, nil, false, "APIServerAvailable True HealthzRequestSucceeded"},
		"never answered":              {Shoot, gone.URL, false, nil, false, ""},
		"should answer":               {Shoot, gone.URL, false, nil, true, "APIServerAvailable False APIServerDown"},
		"is being made":               {Shoot, gone.URL, false, nil, true, "APIServerAvailable Progressing APIServerDown"},
		"no address at all":           {Shoot, "http://239.1.2.3", false, nil, false, ""},
		"does not answer any more":    {Shoot, gone.URL, false, before, false, "APIServerAvailable False APIServerDown"},
		"answers with an error":       {Shoot, refuses.URL, false, before, false, "APIServerAvailable False HealthzRequestFailed"},
		"was put to sleep":            {Shoot, gone.URL, true, before, false, "APIServerAvailable True ConditionNotChecked"},
		"made asleep":                 {Shoot, gone.URL, true, nil, false, ""},
		"virtual garden":              {Garden, answers.URL, false, nil, false, "VirtualGardenAPIServerAvailable True HealthzRequestSucceeded"},
		"virtual garden, never there": {Garden, gone.URL, false, nil, false, "VirtualGardenAPIServerAvailable False VirtualGardenAPIServerDown"},
		"a Seed serves none":          {Seed, answers.URL, false, nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := conventions.NewCluster("target", &rest.Config{Host: c.at}, apply.ClusterOptions{})
			require.NoError(t, err)
			defer target.Close()
			clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
			o := &ownerSession{Owner: Owner{Target: target, Input: render.Input{Owner: render.Owner{Kind: c.kind, Name: "x"}}}}
			o.Input.Objects = map[string]map[string]any{Shoot: {"spec": map[string]any{"hibernation": map[string]any{"enabled": c.asleep}}}}
			r := &Reconciler{Clock: clk}
			if name == "is being made" {
				r.ConditionSettings.Thresholds = condition.Thresholds{"APIServerAvailable": time.Minute}
			}
			got := ""
			for _, one := range r.apiServerConditions(t.Context(), o, condition.New(clk, nil), commonStatus{Conditions: c.before}, &servingCache{isKnown: true, isAPIServerServed: c.served}) {
				got += strings.Join([]string{string(one.Type), string(one.Status), one.Reason}, " ")
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// TestADeploymentThatIsAvailableBetweenTwoCrashes checks that waits, health checks and status all
// report a crash-looping Deployment as unhealthy.
func TestADeploymentThatIsAvailableBetweenTwoCrashes(t *testing.T) {
	s := newSite(t)
	deployment := s.object("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: NS}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, " +
		"template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}")
	b := s.bundle(true, deployment)
	s.mustApply(b)
	client, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	live, err := client.AppsV1().Deployments(s.ns).Get(s.ctx, "web", metav1.GetOptions{})
	require.NoError(t, err)
	live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
	}}
	_, err = client.AppsV1().Deployments(s.ns).UpdateStatus(s.ctx, live, metav1.UpdateOptions{})
	require.NoError(t, err)
	ref := apply.RefOf(deployment)
	waits := waiter{bundle: b, cluster: s.run.owner.Local, refs: []apply.Ref{ref}}
	s.eventually("its status is known", func() bool {
		v, err := s.run.quickVerdict(s.ctx, waits, ref)
		return err == nil && v.Healthy && !v.Progressing
	})
	pods := client.CoreV1().Pods(s.ns)
	pod, err := pods.Create(s.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	state := func(restarts int32, since time.Duration) {
		t.Helper()
		started := metav1.NewTime(time.Now().Add(-since))
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Ready: true, RestartCount: restarts, Image: "i", ImageID: "i",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 1, Reason: "Error", StartedAt: metav1.NewTime(started.Add(-2 * time.Minute)), FinishedAt: metav1.NewTime(started.Add(-time.Minute)),
			}}}}}
		pod, err = pods.UpdateStatus(s.ctx, pod, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	builder := condition.New(s.run.reconciler.Clock, nil)
	judged := func() gardencorev1beta1.Condition {
		return s.run.reconciler.componentCondition(s.ctx, s.run.owner, builder, commonStatus{}, builder.Initial("SeedSystemComponentsHealthy"), []render.Bundle{b}, nil, &servingCache{})
	}
	state(3, time.Second)
	assert.Contains(t, judged().Message, `Deployment `+s.ns+`/web: CrashLoopBackOff: pod "web-1": container "c" runs, but keeps crashing: 3 restart(s), last Error (exit code 1)`)
	shown := BundleState{State: StateHealthy}
	s.run.reconciler.inspectBundle(s.ctx, s.run.owner, b, &servingCache{}, &shown)
	assert.Equal(t, StateUnhealthy, shown.State)
	open, err := s.run.judgeBundles(s.ctx, []waiter{waits}, true, true)
	require.NoError(t, err)
	assert.Len(t, open, 1)

	state(3, 3*time.Minute)
	assert.Equal(t, gardencorev1beta1.ConditionTrue, judged().Status, judged().Message)
	require.NoError(t, s.run.waitAll(s.ctx, []waiter{waits}, true, func(flow.State, string) {}))
}

// TestLostAccessComesBack checks that the next health check restores deleted or changed access.
func TestLostAccessComesBack(t *testing.T) {
	s := newSite(t)
	o := s.run.owner
	o.Input.Owner.Kind = Shoot
	client, err := kubernetes.NewForConfig(server.config)
	require.NoError(t, err)
	secrets := client.CoreV1().Secrets(s.ns)
	_, err = secrets.Create(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "gardener-internal-1a2b"}, Data: map[string][]byte{access.KubeconfigKey: []byte("one")}}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.False(t, o.restoreAccess(s.ctx), "none was made yet")
	now := time.Now()
	o.recordAccess(generatedAccess{secretName: "gardener-internal-1a2b"}, now)
	assert.False(t, o.isAccessCheckDue(now.Add(accessCheckInterval-time.Second)), "it was just written")
	assert.True(t, o.isAccessCheckDue(now.Add(accessCheckInterval)))
	assert.False(t, o.isAccessCheckDue(now.Add(accessCheckInterval)), "somebody looks")
	assert.True(t, o.restoreAccess(s.ctx))
	assert.False(t, o.restoreAccess(s.ctx), "it is there")
	_, err = secrets.Patch(s.ctx, access.SecretName, types.MergePatchType, []byte(`{"data": {"kubeconfig": "cnViYmlzaA=="}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	assert.True(t, o.restoreAccess(s.ctx))
	found, err := secrets.Get(s.ctx, access.SecretName, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "one", string(found.Data[access.KubeconfigKey]))
	require.NoError(t, secrets.Delete(s.ctx, access.SecretName, metav1.DeleteOptions{}))
	assert.True(t, o.restoreAccess(s.ctx))
}
