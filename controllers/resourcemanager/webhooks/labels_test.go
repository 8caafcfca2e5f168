// SPDX-License-Identifier: Apache-2.0

package webhooks

// Labels by which the webhook configurations of the catalogue select objects.
const (
	// SkipProjectedTokenMount is for pods that get no token.
	SkipProjectedTokenMount = "projected-token-mount.resources.gardener.cloud/skip"
	// SkipSeccompProfile is for pods that get no seccomp profile.
	SkipSeccompProfile = "seccompprofile.resources.gardener.cloud/skip"
	// SkipSystemComponentsConfig is for pods that keep their node selector and tolerations.
	SkipSystemComponentsConfig = "system-components-config.resources.gardener.cloud/skip"
	// SkipPodTopologySpreadConstraints is for pods that keep their constraints.
	SkipPodTopologySpreadConstraints = "topology-spread-constraints.resources.gardener.cloud/skip"
	// SkipVPAInPlaceUpdates is for VerticalPodAutoscalers that keep their update mode.
	SkipVPAInPlaceUpdates = "vpa-in-place-updates.resources.gardener.cloud/skip"
	// ConsiderSystemComponentsConfig `true` makes pods of a namespace system components of a
	// runtime cluster.
	ConsiderSystemComponentsConfig = "system-components-config.resources.gardener.cloud/consider"
	// ConsiderEndpointSliceHints `true` makes clients use endpoints in their own zone.
	ConsiderEndpointSliceHints = "endpoint-slice-hints.resources.gardener.cloud/consider"
	// KubernetesServiceHostInject `disable`, on a pod or its namespace, keeps the environment of
	// containers.
	KubernetesServiceHostInject = "apiserver-proxy.networking.gardener.cloud/inject"
	// staticPod `true` marks mirror pods of static pods: a kubelet rejects changes of them.
	staticPod = "static-pod"
)
