// SPDX-License-Identifier: Apache-2.0

package webhooks

// Labels.
const (
	// VPAInPlaceUpdatesMutated `true` says that the update mode of a VerticalPodAutoscaler was
	// changed.
	VPAInPlaceUpdatesMutated = "vpa-in-place-updates.resources.gardener.cloud/mutated"
	// DeletionProtected `true` marks definitions whose deletion must be confirmed.
	DeletionProtected = "gardener.cloud/deletion-protected"
)

// Annotations.
const (
	// ProjectedTokenExpirationSeconds, on a pod, is the lifetime of its token.
	ProjectedTokenExpirationSeconds = "projected-token-mount.resources.gardener.cloud/expiration-seconds"
	// ProjectedTokenFileMode, on a pod, is the file mode of its token: decimal, or octal with a
	// leading zero.
	ProjectedTokenFileMode = "projected-token-mount.resources.gardener.cloud/file-mode"
)
