package webhooks

// Labels by which the webhook configurations of the catalogue select objects.
const (
	// SkipProjectedTokenMount is for pods that get no token mounted.
	SkipProjectedTokenMount = "projected-token-mount.resources.gardener.cloud/skip"
	// SkipSeccompProfile is for pods that get no seccomp profile.
	SkipSeccompProfile = "seccompprofile.resources.gardener.cloud/skip"
	// SkipSystemComponentsConfig is for pods that keep node selector and tolerations.
	SkipSystemComponentsConfig = "system-components-config.resources.gardener.cloud/skip"
	// SkipPodTopologySpreadConstraints is for pods that keep their constraints.
	SkipPodTopologySpreadConstraints = "topology-spread-constraints.resources.gardener.cloud/skip"
	// SkipVPAInPlaceUpdates is for VerticalPodAutoscalers that keep their update mode.
	SkipVPAInPlaceUpdates = "vpa-in-place-updates.resources.gardener.cloud/skip"
	// ConsiderSystemComponentsConfig `true` has the pods of a namespace treated as system
	// components in a runtime cluster.
	ConsiderSystemComponentsConfig = "system-components-config.resources.gardener.cloud/consider"
	// ConsiderEndpointSliceHints `true` has the endpoints of an EndpointSlice used in their own
	// zone.
	ConsiderEndpointSliceHints = "endpoint-slice-hints.resources.gardener.cloud/consider"
	// KubernetesServiceHostInject `disable`, on a pod or its namespace, leaves the environment of
	// containers as it is.
	KubernetesServiceHostInject = "apiserver-proxy.networking.gardener.cloud/inject"
	// staticPod `true` marks the mirrors of static pods: a kubelet does not accept that they are
	// changed.
	staticPod = "static-pod"
)
