// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

func worker(pool string) string {
	return "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, metadata: {name: w, namespace: shoot--p--w}, spec: {pools: [{name: a, maximum: 5, " + pool + "}]}}"
}

func shootOf(pool, rest string) string {
	return "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, metadata: {name: w, namespace: garden-p}, spec: {provider: {workers: [{name: a, maximum: 5, " + pool + "}]}, " + rest + "}}"
}

// TestPools has the changes that upstream documents as replacing nodes, and others.
func TestPools(t *testing.T) {
	const hash1, hash2 = "nodeAgentSecretName: gardener-node-agent-a-1, ", "nodeAgentSecretName: gardener-node-agent-a-2, "
	for name, c := range map[string]struct {
		old, new, how string
		why           []string
	}{
		"machine image":         {worker(hash1 + "machineImage: {name: u, version: 1}"), worker(hash2 + "machineImage: {name: u, version: 2}"), change.NodesReplaced, nil},
		"image":                 {worker(hash1 + "machineImage: {name: u, version: '1'}"), worker(hash2 + "machineImage: {name: u, version: '2'}"), change.NodesReplaced, []string{"machine image u 1 → u 2"}},
		"type":                  {worker(hash1 + "machineType: s"), worker(hash2 + "machineType: l"), change.NodesReplaced, []string{"machine type s → l"}},
		"volume size":           {worker(hash1 + "volume: {size: 10Gi}"), worker(hash2 + "volume: {size: 20Gi}"), change.NodesReplaced, []string{"volume 10Gi → 20Gi"}},
		"volume type":           {worker(hash1 + "volume: {size: 10Gi}"), worker(hash2 + "volume: {size: 10Gi, type: ssd}"), change.NodesReplaced, []string{"volume 10Gi → 10Gi ssd"}},
		"minor version":         {worker(hash1 + "kubernetesVersion: 1.33.4"), worker(hash2 + "kubernetesVersion: 1.34.0"), change.NodesReplaced, []string{"Kubernetes 1.33 → 1.34"}},
		"patch":                 {worker(hash1 + "kubernetesVersion: 1.33.4"), worker(hash1 + "kubernetesVersion: 1.33.5"), "", nil},
		"container runtime":     {worker(hash1 + "labels: {worker.gardener.cloud/cri-name: docker}"), worker(hash2 + "labels: {worker.gardener.cloud/cri-name: containerd}"), change.NodesReplaced, []string{"container runtime docker → containerd"}},
		"node-local DNS":        {worker(hash1 + "labels: {networking.gardener.cloud/node-local-dns-enabled: 'false'}"), worker(hash2 + "labels: {networking.gardener.cloud/node-local-dns-enabled: 'true'}"), change.NodesReplaced, []string{"node-local DNS false → true"}},
		"kubelet reserves":      {worker(hash1 + "kubeletConfig: {kubeReserved: {cpu: 80m}}"), worker(hash2 + "kubeletConfig: {kubeReserved: {cpu: 90m}}"), change.NodesReplaced, []string{"reserved resources of the kubelet cpu 80m → cpu 90m"}},
		"same reserves":         {worker(hash1 + "kubeletConfig: {kubeReserved: {cpu: 80m}}"), worker(hash1 + "kubeletConfig: {kubeReserved: {cpu: '0.08'}}"), "", nil},
		"reserves, zero":        {worker(hash1 + "kubeletConfig: {kubeReserved: {cpu: 80m}}"), worker(hash2 + "kubeletConfig: {kubeReserved: {cpu: 80m, pid: 0}}"), change.NodesReplaced, []string{"reserved resources of the kubelet cpu 80m → cpu 80m, pid 0"}},
		"eviction":              {worker(hash1 + "kubeletConfig: {evictionHard: {memoryAvailable: 1Gi}}"), worker(hash2 + "kubeletConfig: {evictionHard: {memoryAvailable: 2Gi}}"), change.NodesReplaced, []string{"eviction thresholds of the kubelet"}},
		"CPU manager":           {worker(hash1 + "kubeletConfig: {cpuManagerPolicy: none}"), worker(hash2 + "kubeletConfig: {cpuManagerPolicy: static}"), change.NodesReplaced, []string{"CPU manager policy of the kubelet none → static"}},
		"other kubelet field":   {worker(hash1 + "kubeletConfig: {maxPods: 100}"), worker(hash1 + "kubeletConfig: {maxPods: 110}"), "", nil},
		"rotation":              {worker(hash1), worker(hash2), change.NodesReplaced, []string{startConfigText}},
		"provider":              {worker(hash1 + "providerConfig: {a: 1}"), worker(hash1 + "providerConfig: {a: 2}"), change.NodesMaybeReplaced, []string{"providerConfig"}},
		"size of the pool":      {worker(hash1 + "minimum: 1"), worker(hash1 + "minimum: 2"), "", nil},
		"labels, taints, zones": {worker(hash1 + "labels: {a: b}"), worker(hash1 + "labels: {a: c}, taints: [{key: k}], zones: [b]"), "", nil},
		"in place, image":       {worker(hash1 + "updateStrategy: AutoInPlaceUpdate, machineImage: {name: u, version: '1'}"), worker(hash1 + "updateStrategy: AutoInPlaceUpdate, machineImage: {name: u, version: '2'}"), change.NodesUpdatedInPlace, []string{"machine image u 1 → u 2"}},
		"in place, version":     {worker(hash1 + "updateStrategy: ManualInPlaceUpdate, kubernetesVersion: 1.33.4"), worker(hash1 + "updateStrategy: ManualInPlaceUpdate, kubernetesVersion: 1.34.4"), change.NodesUpdatedOnSelection, []string{"Kubernetes 1.33 → 1.34"}},
		"in place, type":        {worker(hash1 + "updateStrategy: AutoInPlaceUpdate, machineType: s"), worker(hash2 + "updateStrategy: AutoInPlaceUpdate, machineType: l"), change.NodesReplaced, []string{"machine type s → l"}},
		"in place, type alone":  {worker(hash1 + "updateStrategy: AutoInPlaceUpdate, machineType: s"), worker(hash1 + "updateStrategy: ManualInPlaceUpdate, machineType: l"), change.NodesMaybeReplaced, []string{"machine type s → l"}},
		"in place, image name":  {worker(hash1 + "updateStrategy: AutoInPlaceUpdate, machineImage: {name: u, version: '1'}"), worker(hash1 + "updateStrategy: AutoInPlaceUpdate, machineImage: {name: v, version: '1'}"), change.NodesMaybeReplaced, []string{"machine image u 1 → v 1"}},
		"in place, both":        {worker(hash1 + "updateStrategy: AutoInPlaceUpdate, machineType: s, kubernetesVersion: 1.33.4"), worker(hash1 + "updateStrategy: AutoInPlaceUpdate, machineType: l, kubernetesVersion: 1.34.1"), change.NodesUpdatedInPlace, []string{"machine type s → l", "Kubernetes 1.33 → 1.34"}},
		"in place, provider":    {worker(hash1 + "updateStrategy: AutoInPlaceUpdate, providerConfig: {a: 1}"), worker(hash1 + "updateStrategy: AutoInPlaceUpdate, providerConfig: {a: 2}"), change.NodesMaybeReplaced, []string{"providerConfig"}},
		"old hash, provider":    {worker("providerConfig: {a: 1}"), worker("providerConfig: {a: 2}"), change.NodesReplaced, []string{"providerConfig"}},
		"old hash, kubelet":     {worker("kubeletConfig: {cpuManagerPolicy: none}"), worker("kubeletConfig: {cpuManagerPolicy: static}"), "", nil},
		"old hash, image":       {worker("machineImage: {name: u, version: '1'}"), worker("machineImage: {name: u, version: '2'}"), change.NodesReplaced, []string{"machine image u 1 → u 2"}},
		"to the new hash":       {worker("machineType: s"), worker(hash1 + "machineType: s"), change.NodesReplaced, []string{startConfigText}},

		"shoot, image":            {shootOf("machine: {type: s, image: {name: u, version: 1.0.0}}", ""), shootOf("machine: {type: s, image: {name: u, version: 1.1.0}}", ""), change.NodesReplaced, []string{"machine image u 1.0.0 → u 1.1.0"}},
		"shoot, version":          {shootOf("machine: {type: s}", "kubernetes: {version: 1.33.1}"), shootOf("machine: {type: s}", "kubernetes: {version: 1.34.1}"), change.NodesReplaced, []string{"Kubernetes 1.33 → 1.34"}},
		"shoot, version of pool":  {shootOf("kubernetes: {version: 1.33.1}", "kubernetes: {version: 1.33.1}"), shootOf("kubernetes: {version: 1.33.1}", "kubernetes: {version: 1.34.1}"), "", nil},
		"shoot, patch":            {shootOf("machine: {type: s}", "kubernetes: {version: 1.33.1}"), shootOf("machine: {type: s}", "kubernetes: {version: 1.33.9}"), "", nil},
		"shoot, runtime default":  {shootOf("machine: {type: s}", ""), shootOf("machine: {type: s}, cri: {name: containerd}", ""), "", nil},
		"shoot, node-local DNS":   {shootOf("machine: {type: s}", "kubernetes: {version: 1.33.5}"), shootOf("machine: {type: s}", "kubernetes: {version: 1.33.5}, systemComponents: {nodeLocalDNS: {enabled: true}}"), change.NodesReplaced, []string{"kubelets use the address of node-local DNS no → yes"}},
		"shoot, DNS since 1.34":   {shootOf("machine: {type: s}", "kubernetes: {version: 1.34.1}"), shootOf("machine: {type: s}", "kubernetes: {version: 1.34.1}, systemComponents: {nodeLocalDNS: {enabled: true}}"), "", nil},
		"shoot, DNS and IPVS":     {shootOf("machine: {type: s}", "kubernetes: {version: 1.34.1}, systemComponents: {nodeLocalDNS: {enabled: true}}"), shootOf("machine: {type: s}", "kubernetes: {version: 1.34.1, kubeProxy: {mode: IPVS}}, systemComponents: {nodeLocalDNS: {enabled: true}}"), change.NodesReplaced, []string{"kubelets use the address of node-local DNS no → yes"}},
		"shoot, kubelet":          {shootOf("machine: {type: s}", ""), shootOf("machine: {type: s}", "kubernetes: {kubelet: {cpuManagerPolicy: static}}"), change.NodesReplaced, []string{"CPU manager policy of the kubelet none → static"}},
		"shoot, kubelet of pool":  {shootOf("kubernetes: {kubelet: {}}", ""), shootOf("kubernetes: {kubelet: {}}", "kubernetes: {kubelet: {cpuManagerPolicy: static}}"), "", nil},
		"shoot, provider's field": {shootOf("providerConfig: {a: 1}", ""), shootOf("providerConfig: {a: 2}", ""), change.NodesMaybeReplaced, []string{"providerConfig"}},
		"shoot, in place, type":   {shootOf("updateStrategy: AutoInPlaceUpdate, machine: {type: s}", ""), shootOf("updateStrategy: ManualInPlaceUpdate, machine: {type: l}", ""), change.NodesMaybeReplaced, []string{"machine type s → l"}},
		"shoot, in place, DNS":    {shootOf("updateStrategy: AutoInPlaceUpdate, machine: {type: s}", "kubernetes: {version: 1.33.1}, systemComponents: {nodeLocalDNS: {enabled: true}}"), shootOf("updateStrategy: AutoInPlaceUpdate, machine: {type: s}", "kubernetes: {version: 1.34.1}, systemComponents: {nodeLocalDNS: {enabled: true}}"), change.NodesUpdatedInPlace, nil},
		"shoot, reserves":         {shootOf("machine: {type: s}", ""), shootOf("machine: {type: s}", "kubernetes: {kubelet: {kubeReserved: {}}}"), change.NodesReplaced, []string{"reserved resources of the kubelet none → nothing of its own"}},
		"shoot, surge":            {shootOf("maxSurge: 1", ""), shootOf("maxSurge: 2", ""), "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			old, new := object(t, c.old), object(t, c.new)
			got := PoolChanges(change.Item{Action: change.Change, Object: change.RefOf(old)}, old, new)
			if c.how == "" {
				assert.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			assert.Equal(t, c.how, got[0].Effect)
			assert.EqualValues(t, 5, got[0].MaxNodes)
			if c.why != nil {
				assert.Equal(t, c.why, got[0].Causes)
			}
		})
	}
}

func TestRemovedPools(t *testing.T) {
	two := object(t, "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, metadata: {name: w}, spec: {pools: [{name: a, maximum: 1}, {name: b, maximum: 2}]}}")
	one := object(t, "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, metadata: {name: w}, spec: {pools: [{name: b, maximum: 2}, {name: new, maximum: 9}]}}")
	deleted := func(name string, nodes int64, why string) change.PoolChange {
		return change.PoolChange{Pool: name, Effect: change.NodesDeleted, MaxNodes: nodes, Causes: []string{why}}
	}
	ref := change.RefOf(two)
	assert.Equal(t, []change.PoolChange{deleted("a", 1, "the pool is removed")}, PoolChanges(change.Item{Action: change.Change, Object: ref}, two, one))
	assert.Len(t, PoolChanges(change.Item{Action: change.Delete, Object: ref}, two, nil), 2)
	assert.Len(t, PoolChanges(change.Item{Action: change.Recreate, Object: ref}, two, two), 2)
	assert.Empty(t, PoolChanges(change.Item{Action: change.Keep, Object: ref}, two, nil))
	assert.Empty(t, PoolChanges(change.Item{Action: change.Create, Object: ref}, nil, two))
	ref.APIVersion = "example.com/v1"
	assert.Empty(t, PoolChanges(change.Item{Action: change.Delete, Object: ref}, two, nil), "a Worker of somebody else")
	for _, broken := range []string{"{}", "{spec: {pools: x}}", "{spec: {pools: [1, {name: 2}]}}", "{spec: {pools: [{name: a, volume: 1, labels: 2, kubeletConfig: x}]}}"} {
		o := &unstructured.Unstructured{Object: object(t, "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, metadata: {name: w}, x: "+broken+"}").Object["x"].(map[string]any)}
		assert.NotPanics(t, func() { PoolChanges(change.Item{Action: change.Change, Object: change.RefOf(two)}, o, two) }, broken)
	}
}

// TestNodes: a Shoot and its Worker are one change, as in the Worker.
func TestNodes(t *testing.T) {
	pools := func(how string) []change.PoolChange {
		return []change.PoolChange{{Pool: "a", Effect: how, MaxNodes: 3}}
	}
	shoot := func(name string) change.Item {
		return change.Item{Cluster: "virtual", Owner: "landscape l", Action: change.Change, Object: change.Ref{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Namespace: "garden-p", Name: name}, Pools: pools(change.NodesReplaced)}
	}
	work := func(name string, pools []change.PoolChange) change.Item {
		return change.Item{Cluster: "seed", Owner: "shoot garden-p/" + name, Action: change.Change, Object: change.Ref{APIVersion: "extensions.gardener.cloud/v1alpha1", Kind: "Worker", Namespace: "shoot--p--" + name, Name: name}, Pools: pools}
	}
	p := change.Plan{Items: []change.Item{shoot("both"), shoot("unbound"), shoot("spared"), work("both", pools(change.NodesUpdatedInPlace)), work("spared", nil)}}
	var got []string
	for _, n := range NodeChanges(p) {
		got = append(got, fmt.Sprintf("%s %s %s", n.Cluster, n.Shoot, n.Effect))
	}
	assert.Equal(t, []string{"seed garden-p/both updated in place", "virtual garden-p/unbound replaced"}, got)
}
