// SPDX-License-Identifier: Apache-2.0

package namespacepolicies

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
)

func clusterNetworks(cluster string) *Networks {
	return &Networks{Cluster: []netip.Prefix{netip.MustParsePrefix(cluster)}, Services: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16")}}
}

func isSameSet(want, have []string) bool {
	want, have = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(have))
	return slices.Equal(want, have)
}

func TestController(t *testing.T) {
	s := newTestCluster(t)
	extension, gateway, other := s.createNamespace("extension", "gardener.cloud/role=extension"), s.createNamespace("gateway", "gardener.cloud/role=istio-ingress"), s.createNamespace("other")
	mine := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyDenyAll}, Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}}
	_, err := s.client.NetworkingV1().NetworkPolicies(other).Create(s.ctx, mine, metav1.CreateOptions{})
	require.NoError(t, err)
	// Policies of upstream are adopted.
	_, err = s.client.NetworkingV1().NetworkPolicies(gateway).Create(s.ctx, mine, metav1.CreateOptions{FieldManager: "gardener-operator"})
	require.NoError(t, err)

	c, stop := s.runController()
	c.SetNetworks(clusterNetworks("10.1.0.0/16"))
	s.eventually("an extension has all", func() bool { return isSameSet(policyNames(), s.policyNamesIn(extension)) })
	s.eventually("a gateway has some", func() bool {
		return isSameSet([]string{policyToDNS, policyToAPIServer, policyDenyAll}, s.policyNamesIn(gateway)) && len(s.getPolicy(gateway, policyDenyAll).Spec.PolicyTypes) == 2
	})
	assert.Equal(t, []string{policyDenyAll}, s.policyNamesIn(other))
	assert.Len(t, s.getPolicy(other, policyDenyAll).Spec.PolicyTypes, 1, "what somebody else made is left alone")
	assert.NotEmpty(t, s.getPolicy(extension, policyToAPIServer).Spec.Egress[0].To[0].IPBlock.CIDR)
	assert.Equal(t, "test", s.getPolicy(extension, policyToAPIServer).Labels[LabelMadeBy])

	// Nothing is written while all policies match.
	before := s.writes.Load()
	c.enqueueAll()
	s.eventually("all were looked at", func() bool { return c.queue.Len() == 0 })
	assert.Equal(t, before, s.writes.Load())

	// A new namespace gets policies, and loses them when it is no longer Gardener's.
	late := s.createNamespace("late", "gardener.cloud/role=extension")
	s.eventually("a new one has all", func() bool { return isSameSet(policyNames(), s.policyNamesIn(late)) })
	_, err = s.client.CoreV1().Namespaces().Patch(s.ctx, late, types.MergePatchType, []byte(`{"metadata":{"labels":{"gardener.cloud/role":null}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.eventually("it loses them", func() bool { return len(s.policyNamesIn(late)) == 0 })

	// Drift is repaired.
	require.NoError(t, s.client.NetworkingV1().NetworkPolicies(extension).Delete(s.ctx, policyDenyAll, metav1.DeleteOptions{}))
	_, err = s.client.NetworkingV1().NetworkPolicies(extension).Patch(s.ctx, policyToDNS, types.MergePatchType, []byte(`{"spec":{"egress":[{}]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.eventually("repaired", func() bool {
		return s.getPolicy(extension, policyDenyAll) != nil && len(s.getPolicy(extension, policyToDNS).Spec.Egress[0].To) > 0
	})

	// New ranges apply at once.
	c.SetNetworks(clusterNetworks("10.9.0.0/16"))
	s.eventually("the new range", func() bool {
		return slices.Equal([]string{"10.9.0.0/16"}, s.getPolicy(extension, policyToPrivateNetworks).Spec.Egress[0].To[0].IPBlock.Except)
	})

	// Another role manages the policies.
	c.Suspend()
	require.NoError(t, s.client.NetworkingV1().NetworkPolicies(extension).Delete(s.ctx, policyDenyAll, metav1.DeleteOptions{}))
	c.SetNetworks(clusterNetworks("10.9.0.0/16"))
	s.eventually("and now nobody else", func() bool { return s.getPolicy(extension, policyDenyAll) != nil })

	// The cluster is no longer used, also after a restart.
	stop()
	c, _ = s.runController()
	c.SetNetworks(nil)
	s.eventually("all are gone", func() bool { return isSameSet([]string{other + "/" + policyDenyAll}, s.listPolicies()) })
}

func TestExtraNamespaces(t *testing.T) {
	s := newTestCluster(t)
	team := s.createNamespace("team", "team=network")
	selector, err := labels.Parse("team=network")
	require.NoError(t, err)
	c, _ := s.runController(func(o *Options) { o.ExtraNamespaces = []labels.Selector{selector} })
	c.SetNetworks(clusterNetworks("10.1.0.0/16"))
	s.eventually("it has all", func() bool { return isSameSet(policyNames(), s.policyNamesIn(team)) })
}

func TestNetworksOfShootNamespace(t *testing.T) {
	s := newTestCluster(t)
	namespace := s.createNamespace("shoot", "gardener.cloud/role=shoot")
	c, _ := s.runController()
	c.SetNetworks(clusterNetworks("10.1.0.0/16"))
	rest := slices.DeleteFunc(policyNames(), func(name string) bool { return name == policyToPrivateNetworks })
	s.eventually("all but one", func() bool { return isSameSet(rest, s.policyNamesIn(namespace)) })
	cluster := parseObject(t, `{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Cluster, spec: {cloudProfile: {}, seed: {}, shoot: {spec: {networking: {pods: 172.16.0.0/16}}}}}`)
	cluster.SetName(namespace)
	clusters := s.dynamic.Resource(clustersResource)
	_, err := clusters.Create(s.ctx, cluster, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, clusters.Delete(context.Background(), namespace, metav1.DeleteOptions{})) })
	excepts := func(want ...string) func() bool {
		return func() bool {
			p := s.getPolicy(namespace, policyToPrivateNetworks)
			return p != nil && slices.Equal(want, p.Spec.Egress[0].To[1].IPBlock.Except)
		}
	}
	s.eventually("the networks of the Shoot are known", excepts("172.16.0.0/16"))
	_, err = clusters.Patch(s.ctx, namespace, types.MergePatchType, []byte(`{"spec":{"shoot":{"status":{"networking":{"nodes":["172.17.0.0/16"]}}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.eventually("more become known", excepts("172.16.0.0/16", "172.17.0.0/16"))
}

// TestAPIServerAddressChanges: policies follow the addresses of the API server and of its name.
func TestAPIServerAddressChanges(t *testing.T) {
	s := newTestCluster(t)
	namespace := s.createNamespace("extension", "gardener.cloud/role=extension")
	var mu sync.Mutex
	at := []string{}
	clock := testclock.NewFakeClock(time.Now())
	t.Setenv("KUBERNETES_SERVICE_HOST", "api.example.org")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	c, _ := s.runController(func(o *Options) {
		o.Clock = clock
		o.LookupHost = func(_ context.Context, host string) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, "api.example.org", host)
			return at, nil
		}
	})
	c.SetNetworks(clusterNetworks("10.1.0.0/16"))
	s.eventually("the others are there", func() bool { return s.getPolicy(namespace, policyDenyAll) != nil })
	assert.Nil(t, s.getPolicy(namespace, policyToAPIServer), "nobody knows where it is")
	for _, address := range []string{"192.0.2.1", "2001:db8::1"} {
		mu.Lock()
		at = []string{address}
		mu.Unlock()
		s.eventually("somebody waits for the next turn", clock.HasWaiters)
		clock.Step(lookupInterval)
		s.eventually(address, func() bool {
			p := s.getPolicy(namespace, policyToAPIServer)
			return p != nil && len(p.Spec.Egress) == 2 && p.Spec.Egress[1].To[0].IPBlock.CIDR == netip.PrefixFrom(netip.MustParseAddr(address), netip.MustParseAddr(address).BitLen()).String()
		})
	}
}

func TestFollowGarden(t *testing.T) {
	s := newTestCluster(t)
	namespace := s.createNamespace("extension", "gardener.cloud/role=extension")
	c, _ := s.runController()
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- FollowGarden(ctx, server.config, c, c.options.Log) }()
	gardens := s.dynamic.Resource(operatorv1alpha1.SchemeGroupVersion.WithResource("gardens"))
	declared := parseObject(t, `{apiVersion: operator.gardener.cloud/v1alpha1, kind: Garden, metadata: {name: garden}, spec: {
	  runtimeCluster: {ingress: {domains: [{name: ingress.example.org}], controller: {kind: nginx}}, networking: {pods: [10.1.0.0/16], services: [10.2.0.0/16]}, provider: {}, settings: {}},
	  virtualCluster: {dns: {domains: [{name: garden.example.org}]}, gardener: {clusterIdentity: test}, kubernetes: {version: 1.34.1}, maintenance: {timeWindow: {begin: 220000+0000, end: 230000+0000}},
	    networking: {services: [100.64.0.0/13]}}}}`)
	_, err := gardens.Create(s.ctx, declared, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := gardens.Delete(context.Background(), "garden", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
	})
	excepts := func(want ...string) func() bool {
		return func() bool {
			p := s.getPolicy(namespace, policyToPrivateNetworks)
			return p != nil && slices.Equal(want, p.Spec.Egress[0].To[0].IPBlock.Except)
		}
	}
	s.eventually("the Garden's networks", excepts("10.1.0.0/16", "10.2.0.0/16"))
	_, err = gardens.Patch(s.ctx, "garden", types.MergePatchType, []byte(`{"spec":{"runtimeCluster":{"networking":{"pods":["10.1.0.0/16","10.7.0.0/16"]}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.eventually("a range that is added counts at once", excepts("10.1.0.0/16", "10.7.0.0/16", "10.2.0.0/16"))
	require.NoError(t, gardens.Delete(s.ctx, "garden", metav1.DeleteOptions{}))
	s.eventually("nothing is left of it", func() bool { return len(s.listPolicies()) == 0 })
	cancel()
	require.NoError(t, <-ended)
}

func TestRepairsSlowDown(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Now())
	r := &repairLimiter{clock: clock}
	key := types.NamespacedName{Namespace: "garden", Name: policyDenyAll}
	spec, other := (&policyInputs{}).policySpec(policyDenyAll), egressSpec("x=y")
	for range maxImmediateRepairs {
		assert.Zero(t, r.reserve(key, spec))
	}
	assert.Equal(t, slowRepairInterval, r.reserve(key, spec))
	assert.Zero(t, r.reserve(key, other), "what is new is written at once")
	for range maxImmediateRepairs {
		_ = r.reserve(key, spec)
	}
	assert.Equal(t, slowRepairInterval, r.reserve(key, spec))
	clock.SetTime(clock.Now().Add(slowRepairInterval))
	assert.Zero(t, r.reserve(key, spec))
	clock.SetTime(clock.Now().Add(repairWindow + time.Second))
	for range maxImmediateRepairs {
		assert.Zero(t, r.reserve(key, spec))
	}
	r.forgetNamespace("garden")
	assert.Empty(t, r.histories)
}
