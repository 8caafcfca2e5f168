// SPDX-License-Identifier: Apache-2.0

package networkpolicy

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

// newSeedIndex is a cluster with shoots: each namespace has an API server that others may reach,
// some Services, and pods that use them.
func newSeedIndex(shoots int) (x *index, services []types.NamespacedName) {
	x = newIndex(nil, nil, 0)
	add := func(namespace, name string, annotations map[string]string) {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{port(443, 443), port(80, 8080)}},
		}
		services = append(services, key(namespace, name))
		x.setService(key(namespace, name), readServiceTraffic(service))
	}
	pod := func(namespace, name string, to ...string) {
		set := labels.Set{"app": name}
		for _, label := range to {
			set[labelPrefix+label] = labelAllowed
		}
		x.setPod(key(namespace, name), set)
	}
	x.setNamespace("garden", &namespace{labels: labels.Set{"role": "garden"}})
	pod("garden", "prometheus", "all-shoots-scrape")
	add("garden", "registry", map[string]string{AnnotationNamespaceSelectors: `[{"matchLabels":{"role":"shoot"}}]`})
	for i := range shoots {
		ns := fmt.Sprintf("shoot--%d", i)
		x.setNamespace(ns, &namespace{labels: labels.Set{"role": "shoot"}})
		add(ns, "kube-apiserver", map[string]string{
			AnnotationNamespaceSelectors: `[{"matchLabels":{"role":"garden"}},{"matchLabels":{"access":"allowed"}}]`,
			AnnotationNamespaceAlias:     "all-shoots", AnnotationFromPrefix + "scrape" + AnnotationFromSuffix: `[{"port":443}]`,
		})
		for n := range 9 {
			add(ns, fmt.Sprint("web-", n), nil)
			pod(ns, fmt.Sprint("web-", n), "kube-apiserver-tcp-443", fmt.Sprintf("web-%d-tcp-8080", (n+1)%9))
		}
		pod(ns, "puller", "garden-registry-tcp-443")
	}
	return x, services
}

// applyPlans applies the plans of Services as the reconciler does.
func applyPlans(x *index, services []types.NamespacedName) (written int) {
	for _, service := range services {
		p := x.planFor(service)
		for _, policy := range p.apply {
			written++
			x.setPolicy(key(policy.Namespace, policy.Name), policy)
		}
		for _, policy := range p.deletions {
			written++
			x.setPolicy(key(policy.Namespace, policy.Name), nil)
		}
	}
	return written
}

func TestCostGrowsLinearly(t *testing.T) {
	cost := func(shoots int) (start, change int) {
		x, services := newSeedIndex(shoots)
		require.Len(t, services, 10*shoots+1)
		// Per shoot: the API server and 9 others, each with a policy at either end; the API server
		// by its alias; the registry.
		require.Equal(t, shoots*(2*10+2+2), applyPlans(x, services))
		start = x.comparisons
		assert.Zero(t, applyPlans(x, services), "unchanged")

		x.comparisons = 0
		e := x.setPod(key("shoot--0", "new"), labels.Set{labelPrefix + "web-3-tcp-443": labelAllowed})
		assert.Equal(t, []types.NamespacedName{key("shoot--0", "web-3")}, e.services)
		assert.Equal(t, 2, applyPlans(x, e.services))
		e = x.setNamespace("shoot--0", &namespace{labels: labels.Set{"role": "none"}})
		assert.Equal(t, []types.NamespacedName{key("garden", "registry")}, e.services)
		return start, x.comparisons
	}
	start, change := cost(50)
	startOf500, changeIn500 := cost(500)
	assert.LessOrEqual(t, startOf500, 11*start, "ten times as much, not a hundred times")
	assert.LessOrEqual(t, changeIn500, 2*change, "a change costs what it changes, whatever else there is")
}

// BenchmarkStart measures the start of the controller with 5,011 Services, without requests.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		x, services := newSeedIndex(501)
		applyPlans(x, services)
	}
}

// BenchmarkUnchanged reconciles each of the 5,011 Services again.
func BenchmarkUnchanged(b *testing.B) {
	x, services := newSeedIndex(501)
	applyPlans(x, services)
	for b.Loop() {
		applyPlans(x, services)
	}
}

func TestOwnWritesCauseNoReconciliation(t *testing.T) {
	x, services := newSeedIndex(1)
	service := services[1]
	p := x.planFor(service)
	require.NotEmpty(t, p.apply)
	first := p.apply[0]
	name := key(first.Namespace, first.Name)
	assert.Empty(t, x.setPolicy(name, first).services)

	changed := first.DeepCopy()
	changed.Spec.PodSelector = metav1.LabelSelector{}
	e := x.setPolicy(name, changed)
	assert.Equal(t, []types.NamespacedName{service}, e.services)
	assert.Equal(t, &name, e.conflict)
	assert.Empty(t, x.setPolicy(name, first).services, "repaired")

	e = x.setPolicy(name, nil)
	assert.Equal(t, []types.NamespacedName{service}, e.services, "deleted")
	assert.Equal(t, &name, e.conflict)

	stale := first.DeepCopy()
	stale.Name = "ingress-to-something-else"
	e = x.setPolicy(key(stale.Namespace, stale.Name), stale)
	assert.Equal(t, []types.NamespacedName{service}, e.services)
	assert.Nil(t, e.conflict)
	assert.Equal(t, []*networkingv1.NetworkPolicy{stale}, x.planFor(service).deletions)
	assert.Empty(t, x.setPolicy(key(stale.Namespace, stale.Name), nil).services, "deleted by us")

	stale.UID = "first"
	x.setPolicy(key(stale.Namespace, stale.Name), stale)
	anew := stale.DeepCopy()
	anew.UID = "second"
	x.forgetPolicy(anew)
	assert.Len(t, x.planFor(service).deletions, 1, "another one was deleted")
	x.forgetPolicy(stale)
	assert.Empty(t, x.planFor(service).deletions, "deleted by us, and the watch is late")
	assert.Empty(t, x.setPolicy(key(stale.Namespace, stale.Name), nil).services)
	x.setPolicy(key(stale.Namespace, stale.Name), anew)
	x.forgetPolicy(stale)
	assert.Len(t, x.planFor(service).deletions, 1, "made anew meanwhile")
}

func TestLabelledClientsAndGatewaysShareAPolicy(t *testing.T) {
	x, service := indexFixture{
		namespaces: map[string]string{"a": "", "gate": ""}, pods: "gate: a-web-tcp-8080",
		service: serviceText(t, map[string]string{AnnotationNamespaceSelectors: `[{}]`}, ""),
	}.index(t)
	x.setPod(key("gate", "gateway"), labels.Set{"istio": "in"})
	x.setPod(key("gate", "second"), labels.Set{"istio": "two"})
	x.setGateway(key("a", "gw"), map[string]string{"istio": "in"})
	x.setGateway(key("gate", "gw"), map[string]string{"istio": "two"})
	to := backend{service: service, port: networkingv1.ServiceBackendPort{Number: 80}}
	e := x.setVirtualService(key("a", "vs"), &virtualService{backends: []backend{to}, gateways: []types.NamespacedName{key("a", "gw"), key("gate", "gw"), key("a", "none")}})
	assert.Equal(t, []types.NamespacedName{service}, e.services)
	wanted := x.planFor(service).wanted
	in := wanted[key("a", "ingress-to-web-tcp-8080-from-gate")]
	require.NotNil(t, in)
	require.Len(t, in.Spec.Ingress, 3)
	var from []string
	for _, r := range in.Spec.Ingress {
		from = append(from, metav1.FormatLabelSelector(r.From[0].PodSelector))
	}
	assert.ElementsMatch(t, []string{labelPrefix + "a-web-tcp-8080=allowed", "istio=in", "istio=two"}, from)
	var out []string
	for _, name := range wanted.keys() {
		if name.Namespace == "gate" {
			out = append(out, metav1.FormatLabelSelector(&wanted[name].Spec.PodSelector))
		}
	}
	assert.ElementsMatch(t, from, out, "each client may go out: %v", wanted.keys())
	assert.Contains(t, wanted, key("gate", "egress-to-a-web-tcp-8080-from-istio"))

	e = x.setPod(key("gate", "gateway"), nil)
	assert.Equal(t, []types.NamespacedName{service}, e.services)
	e = x.setGateway(key("gate", "gw"), nil)
	assert.Equal(t, []types.NamespacedName{service}, e.services)
	assert.ElementsMatch(t, []types.NamespacedName{key("a", "ingress-to-web-tcp-8080-from-gate"), key("gate", "egress-to-a-web-tcp-8080")}, x.planFor(service).wanted.keys())
}

func TestRepairPauses(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	f := repairLimiter{clock: clock, histories: map[types.NamespacedName]repairHistory{}}
	var pauses []time.Duration
	told := 0
	for range 14 {
		pause, tell := f.recordRepair(key("a", "p"))
		pauses = append(pauses, pause)
		if tell {
			told++
		}
	}
	assert.Equal(t, []time.Duration{0, 0, 0, 0, 0, 1e9, 2e9, 4e9, 8e9, 16e9, 32e9, 60e9, 60e9, 60e9}, pauses)
	assert.Equal(t, 1, told)
	pause, _ := f.recordRepair(key("a", "other"))
	assert.Zero(t, pause)
	clock.Step(quietPeriod + time.Second)
	pause, _ = f.recordRepair(key("a", "p"))
	assert.Zero(t, pause, "there was peace")
	assert.Len(t, f.histories, 1)
}
