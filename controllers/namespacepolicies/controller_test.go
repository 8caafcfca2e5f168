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

func networks(cluster string) *Networks {
	return &Networks{Cluster: []netip.Prefix{netip.MustParsePrefix(cluster)}, Services: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16")}}
}

func same(want, have []string) bool {
	want, have = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(have))
	return slices.Equal(want, have)
}

func TestController(t *testing.T) {
	s := newSite(t)
	extension, gateway, other := s.namespace("extension", "gardener.cloud/role=extension"), s.namespace("gateway", "gardener.cloud/role=istio-ingress"), s.namespace("other")
	mine := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: denyAll}, Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}}
	_, err := s.client.NetworkingV1().NetworkPolicies(other).Create(s.ctx, mine, metav1.CreateOptions{})
	require.NoError(t, err)
	// Policies of upstream are adopted.
	_, err = s.client.NetworkingV1().NetworkPolicies(gateway).Create(s.ctx, mine, metav1.CreateOptions{FieldManager: "gardener-operator"})
	require.NoError(t, err)

	c, stop := s.run()
	c.Set(networks("10.1.0.0/16"))
	s.eventually("an extension has all", func() bool { return same(names(), s.has(extension)) })
	s.eventually("a gateway has some", func() bool {
		return same([]string{toDNS, toAPIServer, denyAll}, s.has(gateway)) && len(s.get(gateway, denyAll).Spec.PolicyTypes) == 2
	})
	assert.Equal(t, []string{denyAll}, s.has(other))
	assert.Len(t, s.get(other, denyAll).Spec.PolicyTypes, 1, "what somebody else made is left alone")
	assert.NotEmpty(t, s.get(extension, toAPIServer).Spec.Egress[0].To[0].IPBlock.CIDR)
	assert.Equal(t, "test", s.get(extension, toAPIServer).Labels[LabelMadeBy])

	// Nothing is written while all policies match.
	before := s.writes.Load()
	c.all()
	s.eventually("all were looked at", func() bool { return c.queue.Len() == 0 })
	assert.Equal(t, before, s.writes.Load())

	// A new namespace gets policies, and loses them when it is no longer Gardener's.
	late := s.namespace("late", "gardener.cloud/role=extension")
	s.eventually("a new one has all", func() bool { return same(names(), s.has(late)) })
	_, err = s.client.CoreV1().Namespaces().Patch(s.ctx, late, types.MergePatchType, []byte(`{"metadata":{"labels":{"gardener.cloud/role":null}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.eventually("it loses them", func() bool { return len(s.has(late)) == 0 })

	// Drift is repaired.
	require.NoError(t, s.client.NetworkingV1().NetworkPolicies(extension).Delete(s.ctx, denyAll, metav1.DeleteOptions{}))
	_, err = s.client.NetworkingV1().NetworkPolicies(extension).Patch(s.ctx, toDNS, types.MergePatchType, []byte(`{"spec":{"egress":[{}]}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.eventually("repaired", func() bool {
		return s.get(extension, denyAll) != nil && len(s.get(extension, toDNS).Spec.Egress[0].To) > 0
	})

	// New ranges apply at once.
	c.Set(networks("10.9.0.0/16"))
	s.eventually("the new range", func() bool {
		return slices.Equal([]string{"10.9.0.0/16"}, s.get(extension, toPrivateNetworks).Spec.Egress[0].To[0].IPBlock.Except)
	})

	// Another role manages the policies.
	c.Leave()
	require.NoError(t, s.client.NetworkingV1().NetworkPolicies(extension).Delete(s.ctx, denyAll, metav1.DeleteOptions{}))
	c.Set(networks("10.9.0.0/16"))
	s.eventually("and now nobody else", func() bool { return s.get(extension, denyAll) != nil })

	// The cluster is no longer used, also after a restart.
	stop()
	c, _ = s.run()
	c.Set(nil)
	s.eventually("all are gone", func() bool { return same([]string{other + "/" + denyAll}, s.all()) })
}

func TestFurtherNamespaces(t *testing.T) {
	s := newSite(t)
	team := s.namespace("team", "team=network")
	selector, err := labels.Parse("team=network")
	require.NoError(t, err)
	c, _ := s.run(func(o *Options) { o.Further = []labels.Selector{selector} })
	c.Set(networks("10.1.0.0/16"))
	s.eventually("it has all", func() bool { return same(names(), s.has(team)) })
}

func TestShoot(t *testing.T) {
	s := newSite(t)
	namespace := s.namespace("shoot", "gardener.cloud/role=shoot")
	c, _ := s.run()
	c.Set(networks("10.1.0.0/16"))
	rest := slices.DeleteFunc(names(), func(name string) bool { return name == toPrivateNetworks })
	s.eventually("all but one", func() bool { return same(rest, s.has(namespace)) })
	cluster := object(t, `{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Cluster, spec: {cloudProfile: {}, seed: {}, shoot: {spec: {networking: {pods: 172.16.0.0/16}}}}}`)
	cluster.SetName(namespace)
	clusters := s.dynamic.Resource(clustersResource)
	_, err := clusters.Create(s.ctx, cluster, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, clusters.Delete(context.Background(), namespace, metav1.DeleteOptions{})) })
	excepts := func(want ...string) func() bool {
		return func() bool {
			p := s.get(namespace, toPrivateNetworks)
			return p != nil && slices.Equal(want, p.Spec.Egress[0].To[1].IPBlock.Except)
		}
	}
	s.eventually("the networks of the Shoot are known", excepts("172.16.0.0/16"))
	_, err = clusters.Patch(s.ctx, namespace, types.MergePatchType, []byte(`{"spec":{"shoot":{"status":{"networking":{"nodes":["172.17.0.0/16"]}}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.eventually("more become known", excepts("172.16.0.0/16", "172.17.0.0/16"))
}

// TestServersMove: policies follow the addresses of the API server and of its name.
func TestServersMove(t *testing.T) {
	s := newSite(t)
	namespace := s.namespace("extension", "gardener.cloud/role=extension")
	var mu sync.Mutex
	at := []string{}
	clock := testclock.NewFakeClock(time.Now())
	t.Setenv("KUBERNETES_SERVICE_HOST", "api.example.org")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	c, _ := s.run(func(o *Options) {
		o.Clock = clock
		o.LookUp = func(_ context.Context, host string) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, "api.example.org", host)
			return at, nil
		}
	})
	c.Set(networks("10.1.0.0/16"))
	s.eventually("the others are there", func() bool { return s.get(namespace, denyAll) != nil })
	assert.Nil(t, s.get(namespace, toAPIServer), "nobody knows where it is")
	for _, address := range []string{"192.0.2.1", "2001:db8::1"} {
		mu.Lock()
		at = []string{address}
		mu.Unlock()
		s.eventually("somebody waits for the next turn", clock.HasWaiters)
		clock.Step(lookUp)
		s.eventually(address, func() bool {
			p := s.get(namespace, toAPIServer)
			return p != nil && len(p.Spec.Egress) == 2 && p.Spec.Egress[1].To[0].IPBlock.CIDR == netip.PrefixFrom(netip.MustParseAddr(address), netip.MustParseAddr(address).BitLen()).String()
		})
	}
}

func TestGarden(t *testing.T) {
	s := newSite(t)
	namespace := s.namespace("extension", "gardener.cloud/role=extension")
	c, _ := s.run()
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- FollowGarden(ctx, server.config, c, c.o.Log) }()
	gardens := s.dynamic.Resource(operatorv1alpha1.SchemeGroupVersion.WithResource("gardens"))
	declared := object(t, `{apiVersion: operator.gardener.cloud/v1alpha1, kind: Garden, metadata: {name: garden}, spec: {
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
			p := s.get(namespace, toPrivateNetworks)
			return p != nil && slices.Equal(want, p.Spec.Egress[0].To[0].IPBlock.Except)
		}
	}
	s.eventually("the Garden's networks", excepts("10.1.0.0/16", "10.2.0.0/16"))
	_, err = gardens.Patch(s.ctx, "garden", types.MergePatchType, []byte(`{"spec":{"runtimeCluster":{"networking":{"pods":["10.1.0.0/16","10.7.0.0/16"]}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.eventually("a range that is added counts at once", excepts("10.1.0.0/16", "10.7.0.0/16", "10.2.0.0/16"))
	require.NoError(t, gardens.Delete(s.ctx, "garden", metav1.DeleteOptions{}))
	s.eventually("nothing is left of it", func() bool { return len(s.all()) == 0 })
	cancel()
	require.NoError(t, <-ended)
}

func TestRepairsSlowDown(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Now())
	r := &repairs{clock: clock}
	key := types.NamespacedName{Namespace: "garden", Name: denyAll}
	spec, other := (&surroundings{}).policy(denyAll), egress("x=y")
	for range freeRepairs {
		assert.Zero(t, r.pause(key, spec))
	}
	assert.Equal(t, slowRepair, r.pause(key, spec))
	assert.Zero(t, r.pause(key, other), "what is new is written at once")
	for range freeRepairs {
		_ = r.pause(key, spec)
	}
	assert.Equal(t, slowRepair, r.pause(key, spec))
	clock.SetTime(clock.Now().Add(slowRepair))
	assert.Zero(t, r.pause(key, spec))
	clock.SetTime(clock.Now().Add(peace + time.Second))
	for range freeRepairs {
		assert.Zero(t, r.pause(key, spec))
	}
	r.forget("garden")
	assert.Empty(t, r.by)
}
