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
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// localPolicies are the policies for port 8080 of Service web and clients in its namespace.
var localPolicies = []string{"NS/ingress-to-web-tcp-8080", "NS/egress-to-web-tcp-8080"}

// foreignPolicies are the policies for clients in the other namespace.
var foreignPolicies = []string{"NS/ingress-to-web-tcp-8080-from-OTHER", "OTHER/egress-to-NS-web-tcp-8080"}

func concat(a, b []string) []string { return append(append([]string{}, a...), b...) }

func TestPoliciesFollowServiceAndClients(t *testing.T) {
	s := newTestEnv(t)
	s.start()
	service := s.service("web", nil, port(80, 8080))
	s.pod(s.ns, "stranger")
	pod := s.pod(s.ns, "client", "web-tcp-8080")
	s.waitForPolicies(localPolicies...)
	assert.Equal(t, FieldManager, s.policy(localPolicies[0]).ManagedFields[0].Manager)

	s.patch(service, `{"spec":{"ports":[{"port":80,"name":"p80","targetPort":9090}]}}`)
	s.waitForPolicies()
	s.patch(pod, `{"metadata":{"labels":{"networking.resources.gardener.cloud/to-web-tcp-9090":"allowed"}}}`)
	s.waitForPolicies("NS/ingress-to-web-tcp-9090", "NS/egress-to-web-tcp-9090")
	s.patch(pod, `{"metadata":{"labels":{"networking.resources.gardener.cloud/to-web-tcp-9090":"denied"}}}`)
	s.waitForPolicies()
	s.patch(pod, `{"metadata":{"labels":{"networking.resources.gardener.cloud/to-web-tcp-9090":"allowed"}}}`)
	s.waitForPolicies("NS/ingress-to-web-tcp-9090", "NS/egress-to-web-tcp-9090")

	s.patch(service, `{"spec":{"selector":{"app":"other"}}}`)
	s.eventually("both know the new selector", func() bool {
		in, out := s.policy("NS/ingress-to-web-tcp-9090"), s.policy("NS/egress-to-web-tcp-9090")
		return in.Spec.PodSelector.MatchLabels["app"] == "other" && out.Spec.Egress[0].To[0].PodSelector.MatchLabels["app"] == "other"
	})
	s.patch(service, `{"spec":{"selector":null}}`)
	s.waitForPolicies()
	s.patch(service, `{"spec":{"selector":{"app":"web"}}}`)
	s.waitForPolicies("NS/ingress-to-web-tcp-9090", "NS/egress-to-web-tcp-9090")
	s.patch(service, `{"metadata":{"annotations":{"networking.resources.gardener.cloud/from-world-to-ports":"[]"}}}`)
	s.waitForPolicies("NS/ingress-to-web-tcp-9090", "NS/egress-to-web-tcp-9090", "NS/ingress-to-web-from-world")
	s.delete(service)
	s.waitForPolicies()
}

func TestPoliciesFollowNamespaces(t *testing.T) {
	s := newTestEnv(t)
	s.start()
	service := s.service("web", map[string]string{AnnotationNamespaceSelectors: `[{"matchLabels":{"test":"NS","kind":"other"}}]`}, port(80, 8080))
	s.pod(s.ns, "client", "web-tcp-8080")
	s.pod(s.other, "client", "NS-web-tcp-8080")
	s.waitForPolicies(concat(localPolicies, foreignPolicies)...)
	home, other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.other}}

	s.patch(other, `{"metadata":{"labels":{"kind":"none"}}}`)
	s.waitForPolicies(localPolicies...)
	s.patch(other, `{"metadata":{"labels":{"kind":"other"}}}`)
	s.waitForPolicies(concat(localPolicies, foreignPolicies)...)
	s.patch(home, `{"metadata":{"labels":{"test":"none"}}}`)
	s.waitForPolicies()
	s.patch(home, `{"metadata":{"labels":{"test":"NS"}}}`)
	s.waitForPolicies(concat(localPolicies, foreignPolicies)...)

	// In a terminating namespace nothing can be created, and policies stay for its last pods.
	s.delete(other)
	s.delete(s.policy(foreignPolicies[1]))
	s.pod(s.ns, "again", "web-tcp-9090")
	second := s.service("second", nil, port(80, 1))
	s.pod(s.ns, "second", "second-tcp-1")
	s.waitForPolicies("NS/ingress-to-second-tcp-1", "NS/egress-to-second-tcp-1", localPolicies[0], localPolicies[1], foreignPolicies[0])
	s.delete(second)
	s.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.other, Name: "client"}})
	s.waitForPolicies(localPolicies...)

	// If the namespace of a Service terminates, all its policies stay until the Service is deleted,
	// even in other namespaces.
	third := s.newNamespace("third")
	s.patch(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: third}}, `{"metadata":{"labels":{"kind":"other"}}}`)
	s.pod(third, "client", "NS-web-tcp-8080")
	there := third + "/egress-to-NS-web-tcp-8080"
	s.eventually("clients in a third namespace", func() bool { return s.policy(there) != nil && len(s.policies()) == 3 })
	s.delete(home)
	for _, namespace := range []string{s.ns, third} {
		s.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "client"}})
	}
	s.createSentinelService(s.newNamespace("fourth"))
	assert.Len(t, s.policies(), 3)
	assert.NotNil(t, s.policy(there))
	s.delete(service)
	s.eventually("the Service is gone", func() bool { return s.policy(there) == nil })
}

// newNamespace creates a namespace that is handled.
func (s *testEnv) newNamespace(suffix string) string {
	s.Helper()
	name := s.ns + "-" + suffix
	s.extraNamespaces = append(s.extraNamespaces, name)
	s.create(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {test: NS}}}", name))
	return name
}

// createSentinelService creates a Service with a client in another namespace and waits for its
// policy: then the controller has seen all earlier changes.
func (s *testEnv) createSentinelService(namespace string) {
	s.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "last", Annotations: map[string]string{AnnotationFromWorld: "[]"}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "last"}, Ports: []corev1.ServicePort{port(80, 80)}},
	}
	require.NoError(s, s.api.Create(s.ctx, service))
	s.eventually("the last policy", func() bool { return s.policy(namespace+"/ingress-to-last-from-world") != nil })
}

func TestAChangedPolicyIsRepaired(t *testing.T) {
	s := newTestEnv(t)
	s.start()
	s.service("web", nil, port(80, 8080))
	s.pod(s.ns, "client", "web-tcp-8080")
	s.waitForPolicies(localPolicies...)
	want := s.policy(localPolicies[0])
	repaired := func(what, change string) {
		t.Helper()
		s.patch(s.policy(localPolicies[0]), change)
		s.eventually(what, func() bool {
			have := s.policy(localPolicies[0])
			return have != nil && assert.ObjectsAreEqual(want.Spec, have.Spec) && have.Labels[LabelServiceName] == "web" &&
				have.Labels[LabelServiceNamespace] == s.ns && have.Annotations[annotationDescription] != ""
		})
	}
	repaired("other pods", `{"spec":{"podSelector":{"matchLabels":{"app":"xyz"}}}}`)
	repaired("another port", `{"spec":{"ingress":[{"ports":[{"port":1}]}]}}`)
	repaired("the other direction", `{"spec":{"egress":[{}],"policyTypes":["Ingress","Egress"]}}`)
	repaired("a label", `{"metadata":{"labels":{"networking.resources.gardener.cloud/service-name":null}}}`)
	repaired("no description", `{"metadata":{"annotations":{"gardener.cloud/description":null}}}`)
	s.delete(s.policy(localPolicies[0]))
	s.waitForPolicies(localPolicies...)
	s.requests.takeCounts()
	s.createSentinelService(s.newNamespace("third"))
	assert.Equal(t, map[string]int{"PATCH networkpolicies": 1}, s.requests.takeCounts(), "nothing is written again")
}

func TestForeignPoliciesAreLeftAlone(t *testing.T) {
	s := newTestEnv(t)
	foreign := func(name, more string) *networkingv1.NetworkPolicy {
		s.create(fmt.Sprintf("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: %s, namespace: NS%s}, spec: {podSelector: {}, policyTypes: [Ingress]}}", name, more))
		return s.policy("NS/" + name)
	}
	prefix, same := foreign("ingress-to-web-tcp-9090", ""), foreign("ingress-to-web-tcp-8080", "")
	s.start()
	service := s.service("web", nil, port(80, 8080))
	s.pod(s.ns, "client", "web-tcp-8080")
	s.eventually("an event says so", func() bool {
		return s.hasEvent(reasonNameTaken, "NetworkPolicy "+s.ns+"/ingress-to-web-tcp-8080 belongs to another owner")
	})
	s.waitForPolicies("NS/ingress-to-web-tcp-9090", "NS/ingress-to-web-tcp-8080", "NS/egress-to-web-tcp-8080")
	assert.Equal(t, same.ResourceVersion, s.policy("NS/ingress-to-web-tcp-8080").ResourceVersion)
	s.delete(same)
	s.eventually("the place is taken", func() bool {
		p := s.policy("NS/ingress-to-web-tcp-8080")
		return p != nil && p.Labels[LabelServiceName] == "web"
	})
	s.delete(service)
	s.waitForPolicies("NS/ingress-to-web-tcp-9090")
	assert.Equal(t, prefix.ResourceVersion, s.policy("NS/ingress-to-web-tcp-9090").ResourceVersion)
}

// hasEvent reports whether an event exists.
func (s *testEnv) hasEvent(reason, text string) bool {
	s.Helper()
	list := &corev1.EventList{}
	require.NoError(s, s.api.List(s.ctx, list, client.InNamespace(s.ns)))
	for _, e := range list.Items {
		if e.Reason == reason && e.InvolvedObject.Kind == "Service" && assert.Contains(&testing.T{}, e.Message, text) && e.InvolvedObject.UID != "" {
			return true
		}
	}
	return false
}

func TestPolicyNameConflict(t *testing.T) {
	s := newTestEnv(t)
	s.start()
	third := s.newNamespace("third")
	selectors := map[string]string{AnnotationNamespaceSelectors: fmt.Sprintf(`[{"matchLabels":{"kubernetes.io/metadata.name":%q}}]`, third)}
	// egress-to-<namespace>-<service> is the same for other-c in NS and c in OTHER.
	first := s.service("other-c", selectors, port(80, 80))
	s.pod(third, "client", "OTHER-c-tcp-80")
	name := third + "/egress-to-" + s.other + "-c-tcp-80"
	s.eventually("the first has it", func() bool { p := s.policy(name); return p != nil && p.Labels[LabelServiceName] == "other-c" })
	second := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.other, Name: "c", Annotations: selectors},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "c"}, Ports: []corev1.ServicePort{port(80, 80)}},
	}
	require.NoError(t, s.api.Create(s.ctx, second))
	s.eventually("the other policy of the second", func() bool { return s.policy(fmt.Sprintf("OTHER/ingress-to-c-tcp-80-from-%s", third)) != nil })
	assert.Equal(t, "other-c", s.policy(name).Labels[LabelServiceName])
	s.delete(first)
	s.eventually("the second has it", func() bool { p := s.policy(name); return p != nil && p.Labels[LabelServiceName] == "c" })
}

func TestRepeatedChangesAreReported(t *testing.T) {
	s := newTestEnv(t)
	s.start()
	s.service("web", nil, port(80, 8080))
	s.pod(s.ns, "client", "web-tcp-8080")
	s.waitForPolicies(localPolicies...)
	for i := range maxImmediateRepairs + 1 {
		s.patch(s.policy(localPolicies[0]), fmt.Sprintf(`{"spec":{"podSelector":{"matchLabels":{"app":"xyz%d"}}}}`, i))
		s.eventually("repaired", func() bool { return s.policy(localPolicies[0]).Spec.PodSelector.MatchLabels["app"] == "web" })
	}
	s.eventually("an event names who", func() bool {
		return s.hasEvent(reasonWriteConflict, "NetworkPolicy "+s.ns+"/ingress-to-web-tcp-8080 of this Service is changed repeatedly by somebody")
	})
}

func TestInvalidAnnotationDeletesNothing(t *testing.T) {
	s := newTestEnv(t)
	s.start()
	service := s.service("web", map[string]string{AnnotationFromPrefix + "all" + AnnotationFromSuffix: `[{"port":9090,"protocol":"TCP"}]`}, port(80, 8080))
	s.pod(s.ns, "client", "web-tcp-8080", "all", "web-tcp-8081")
	via := []string{"NS/ingress-to-web-tcp-9090-via-all", "NS/egress-to-web-tcp-9090-via-all"}
	s.waitForPolicies(concat(localPolicies, via)...)
	s.patch(service, `{"metadata":{"annotations":{"networking.resources.gardener.cloud/from-all-allowed-ports":"[9090"}},"spec":{"ports":[{"port":80,"targetPort":8080,"name":"p80"},{"port":81,"targetPort":8081,"name":"p81"}]}}`)
	more := []string{"NS/ingress-to-web-tcp-8081", "NS/egress-to-web-tcp-8081"}
	s.waitForPolicies(concat(concat(localPolicies, via), more)...)
	s.eventually("an event says so", func() bool { return s.hasEvent(reasonAnnotation, "from-all-allowed-ports") })

	// A policy that the API server rejects does not block the others and is not retried.
	s.patch(service, `{"metadata":{"annotations":{"networking.resources.gardener.cloud/from-all-allowed-ports":"[{\"port\":9090},{\"port\":\"Not_A_Port\"}]"}}}`)
	s.eventually("an event says so", func() bool { return s.hasEvent(reasonRefused, "Not_A_Port") })
	s.waitForPolicies(concat(concat(localPolicies, via), more)...)
	s.patch(service, `{"metadata":{"annotations":{"networking.resources.gardener.cloud/from-all-allowed-ports":null}}}`)
	s.waitForPolicies(concat(localPolicies, more)...)
}

func TestPoliciesLinger(t *testing.T) {
	s := newTestEnv(t)
	clock := testingclock.NewFakeClock(time.Now())
	s.start(func(o *Options) { o.Clock, o.LingerPeriod = clock, time.Minute })
	s.service("web", nil, port(80, 8080))
	pod := s.pod(s.ns, "client", "web-tcp-8080")
	s.waitForPolicies(localPolicies...)
	uid := s.policy(localPolicies[0]).UID
	s.delete(pod)
	s.eventually("it is noticed", clock.HasWaiters)
	s.pod(s.ns, "client-2", "web-tcp-8080", "second-tcp-1")
	s.service("second", nil, port(80, 1))
	second := []string{"NS/ingress-to-second-tcp-1", "NS/egress-to-second-tcp-1"}
	s.waitForPolicies(concat(localPolicies, second)...)
	clock.Step(time.Minute)
	s.createSentinelService(s.newNamespace("third"))
	s.waitForPolicies(concat(localPolicies, second)...)
	assert.Equal(t, uid, s.policy(localPolicies[0]).UID)

	s.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "client-2"}})
	s.eventually("it is noticed", clock.HasWaiters)
	clock.Step(59 * time.Second)
	s.createSentinelService(s.newNamespace("fourth"))
	s.waitForPolicies(concat(localPolicies, second)...)
	s.eventually("the time is over", func() bool {
		clock.Step(time.Second)
		return len(s.policies()) == 0
	})
}

func TestAdoptsUpstreamPolicies(t *testing.T) {
	s := newTestEnv(t)
	s.service("web", nil, port(80, 8080), port(81, 8081))
	s.pod(s.ns, "client", "web-tcp-8080", "web-tcp-8081")
	byUpstream := func(name, spec string) string {
		o := s.object(fmt.Sprintf(`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: %s, namespace: NS,
			annotations: {gardener.cloud/description: "Allows something"},
			labels: {networking.resources.gardener.cloud/service-name: web, networking.resources.gardener.cloud/service-namespace: NS}}, spec: %s}`, name, spec))
		require.NoError(t, s.api.Create(s.ctx, o, client.FieldOwner("gardener-resource-manager")))
		return o.GetResourceVersion()
	}
	version := byUpstream("ingress-to-web-tcp-8080", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress],
		ingress: [{from: [{podSelector: {matchLabels: {networking.resources.gardener.cloud/to-web-tcp-8080: allowed}}}], ports: [{port: 8080, protocol: TCP}]}]}`)
	byUpstream("egress-to-web-tcp-8080", `{podSelector: {matchLabels: {networking.resources.gardener.cloud/to-web-tcp-8080: allowed}}, policyTypes: [Egress],
		egress: [{to: [{podSelector: {matchLabels: {app: web}}}], ports: [{port: 8080, protocol: TCP}]}]}`)
	old := byUpstream("ingress-to-web-tcp-8081", `{podSelector: {matchLabels: {app: old}}, policyTypes: [Ingress], ingress: [{}]}`)
	byUpstream("ingress-to-web-tcp-1", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress], ingress: [{}]}`)
	s.start()
	s.waitForPolicies("NS/ingress-to-web-tcp-8080", "NS/egress-to-web-tcp-8080", "NS/ingress-to-web-tcp-8081", "NS/egress-to-web-tcp-8081")
	s.eventually("what differed is as it should be", func() bool {
		p := s.policy("NS/ingress-to-web-tcp-8081")
		return p.ResourceVersion != old && p.Spec.PodSelector.MatchLabels["app"] == "web" && len(p.Spec.Ingress[0].From) == 1
	})
	assert.Equal(t, version, s.policy("NS/ingress-to-web-tcp-8080").ResourceVersion, "what is right is not written")
	requests := s.requests.takeCounts()
	assert.Equal(t, 2, requests["PATCH networkpolicies"])
	assert.Equal(t, 1, requests["DELETE networkpolicies"])
	assert.LessOrEqual(t, requests["GET networkpolicies"], 1, "the list, if it is not a watch")
}

func TestRequestsOfManyServices(t *testing.T) {
	const many = 150
	s := newTestEnv(t)
	stop := s.start()
	var to []string
	for i := range many {
		name := fmt.Sprint("web-", i)
		s.service(name, nil, port(80, 8080))
		to = append(to, name+"-tcp-8080")
	}
	s.pod(s.ns, "client", to...)
	s.eventually("all are there", func() bool { return len(s.policies()) == 2*many })
	s.createSentinelService(s.newNamespace("third"))
	requests := s.requests.takeCounts()
	assert.Equal(t, 2*many+1, requests["PATCH networkpolicies"], "one request a policy")
	for what, n := range requests {
		if what != "PATCH networkpolicies" && what != "GET other" {
			assert.LessOrEqual(t, n, 1, "%s: one list", what)
		}
	}
	stop()
	s.start()
	s.createSentinelService(s.newNamespace("fourth"))
	requests = s.requests.takeCounts()
	assert.Equal(t, 1, requests["PATCH networkpolicies"], "after a restart nothing is written")
	assert.Zero(t, requests["DELETE networkpolicies"])
	s.pod(s.ns, "second", "web-7-tcp-80")
	s.patch(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web-7"}}, `{"spec":{"ports":[{"port":80,"name":"p80","targetPort":80}]}}`)
	s.eventually("the new port", func() bool {
		return s.policy("NS/egress-to-web-7-tcp-80") != nil && s.policy("NS/ingress-to-web-7-tcp-80") != nil
	})
	s.eventually("not the old", func() bool { return len(s.policies()) == 2*many })
	assert.Equal(t, map[string]int{"PATCH networkpolicies": 2, "DELETE networkpolicies": 2}, s.requests.takeCounts())
}
