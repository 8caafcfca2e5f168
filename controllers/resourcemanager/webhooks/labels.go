package webhooks

// Labels that say more about an object or its namespace.
const (
	// VPAInPlaceUpdatesMutated `true` says that the update mode of a VerticalPodAutoscaler was
	// changed.
	VPAInPlaceUpdatesMutated = "vpa-in-place-updates.resources.gardener.cloud/mutated"
	// DeletionProtected `true` marks definitions whose deletion has to be confirmed.
	DeletionProtected = "gardener.cloud/deletion-protected"
)

// Annotations.
const (
	// ProjectedTokenExpirationSeconds, on a pod, is how long its token is valid.
	ProjectedTokenExpirationSeconds = "projected-token-mount.resources.gardener.cloud/expiration-seconds"
	// ProjectedTokenFileMode, on a pod, is the mode of the files of its token: decimal, or octal
	// with a leading zero.
	ProjectedTokenFileMode = "projected-token-mount.resources.gardener.cloud/file-mode"
)
