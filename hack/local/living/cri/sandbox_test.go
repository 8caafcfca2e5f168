// SPDX-License-Identifier: Apache-2.0

package cri

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestSandbox(t *testing.T) {
	w := newWorld(t)
	id := w.createSandbox("p")
	status, err := w.PodSandboxStatus(t.Context(), id, false)
	require.NoError(t, err)
	assert.Equal(t, "10.160.1.1", status.GetStatus().GetNetwork().GetIp())
	assert.Equal(t, runtimeapi.PodSandboxState_SANDBOX_READY, status.GetStatus().GetState())
	text, err := os.ReadFile(filepath.Join(w.folder(id), "resolv.conf"))
	require.NoError(t, err)
	assert.Equal(t, "nameserver 10.96.0.10\nsearch garden.svc.cluster.local cluster.local\noptions ndots:5\n", string(text))

	host := w.createSandbox("h", func(c *runtimeapi.PodSandboxConfig) {
		c.Hostname = ""
		c.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}}}
	})
	status, err = w.PodSandboxStatus(t.Context(), host, false)
	require.NoError(t, err)
	assert.Empty(t, status.GetStatus().GetNetwork().GetIp(), "the kubelet knows the one of the node")
	_, p := w.startContainer(host)
	assert.Empty(t, p.spec.NetNS)

	require.NoError(t, w.StopPodSandbox(t.Context(), id))
	require.NoError(t, w.StopPodSandbox(t.Context(), id))
	assert.Empty(t, w.networks)
	list, err := w.ListPodSandbox(t.Context(), &runtimeapi.PodSandboxFilter{State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_NOTREADY}})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, id, list[0].GetId())
	list, err = w.ListPodSandbox(t.Context(), &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{"name": "h"}})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, host, list[0].GetId())
	require.NoError(t, w.RemovePodSandbox(t.Context(), id))
	require.NoError(t, w.RemovePodSandbox(t.Context(), id))
	_, err = w.PodSandboxStatus(t.Context(), id, false)
	assert.ErrorContains(t, err, "not found")
	_, err = w.RunPodSandbox(t.Context(), &runtimeapi.PodSandboxConfig{}, "gvisor")
	assert.ErrorContains(t, err, "gvisor")
}

// TestAddressPool checks that addresses are reused as late as possible.
func TestAddressPool(t *testing.T) {
	p := addressPool{prefix: netip.MustParsePrefix("10.0.0.0/29")}
	take := func() string {
		address, err := p.allocate()
		if err != nil {
			return err.Error()
		}
		return address.String()
	}
	assert.Equal(t, "10.0.0.1", take())
	assert.Equal(t, "10.0.0.2", take())
	p.free(netip.MustParseAddr("10.0.0.1"))
	for _, want := range []string{"10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.1", "no address is left in 10.0.0.0/29"} {
		assert.Equal(t, want, take())
	}
	p.free(netip.MustParseAddr("10.0.0.4"))
	assert.Equal(t, "10.0.0.4", take())
}

func TestImages(t *testing.T) {
	w := newWorld(t)
	i := Images{w.Runtime}
	status, err := i.ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: "registry.k8s.io/kube-apiserver:v1.35.0"}, false)
	require.NoError(t, err)
	assert.Equal(t, "registry.k8s.io/kube-apiserver:v1.35.0", status.GetImage().GetId())
	status, err = i.ImageStatus(t.Context(), &runtimeapi.ImageSpec{Image: "nginx:1"}, false)
	require.NoError(t, err)
	assert.Nil(t, status.GetImage())
	_, err = i.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "nginx:1"}, nil, nil)
	assert.ErrorContains(t, err, "no executable for the image nginx:1")
	_, err = i.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "registry.k8s.io/kube-apiserver:v1.30.0"}, nil, nil)
	assert.ErrorContains(t, err, "can be 1.33 to 1.36")
	pod := w.createSandbox("p")
	w.createContainer(pod)
	w.createContainer(pod)
	list, err := i.ListImages(t.Context(), nil)
	require.NoError(t, err)
	assert.Len(t, list, 1)
}
