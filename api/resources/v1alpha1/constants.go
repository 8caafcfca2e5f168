// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"

// Condition types of a ManagedResource.
const (
	// ResourcesApplied reports whether every object of the manifests exists in the target cluster.
	ResourcesApplied gardencorev1beta1.ConditionType = "ResourcesApplied"
	// ResourcesHealthy reports whether every object is healthy. Checked only once ResourcesApplied
	// is not False.
	ResourcesHealthy gardencorev1beta1.ConditionType = "ResourcesHealthy"
	// ResourcesProgressing reports whether an object is still rolling out. True alone is not a
	// failure.
	ResourcesProgressing gardencorev1beta1.ConditionType = "ResourcesProgressing"
)

// Reasons of the conditions of a ManagedResource. For an object that is missing, unhealthy or
// progressing the reason is its kind with one of the suffixes.
const (
	ConditionApplySucceeded = "ApplySucceeded"
	// ConditionFieldsDropped is ConditionApplySucceeded if the API server drops some fields. An
	// addition of Pergola.
	ConditionFieldsDropped                    = "FieldsDropped"
	ConditionApplyFailed                      = "ApplyFailed"
	ConditionApplyProgressing                 = "ApplyProgressing"
	ConditionDecodingFailed                   = "DecodingFailed"
	ConditionCannotReadSecret                 = "CannotReadSecret"
	ConditionDeletionFailed                   = "DeletionFailed"
	ConditionDeletionPending                  = "DeletionPending"
	ConditionReleaseOfOrphanedResourcesFailed = "ReleaseOfOrphanedResourcesFailed"
	ConditionManagedResourceIgnored           = "ManagedResourceIgnored"
	ConditionResourcesHealthy                 = "ResourcesHealthy"
	ConditionHealthCheckError                 = "HealthCheckError"
	ConditionHealthChecksPending              = "ChecksPending"
	ConditionResourcesRolledOut               = "ResourcesRolledOut"

	ConditionReasonSuffixMissing     = "Missing"
	ConditionReasonSuffixUnhealthy   = "Unhealthy"
	ConditionReasonSuffixProgressing = "Progressing"
)

// Annotations understood on ManagedResources and on the objects they apply.
const (
	// Ignore `true` on a ManagedResource stops its reconciliation; on an applied object it leaves
	// the live object unchanged.
	Ignore = "resources.gardener.cloud/ignore"
	// Mode sets how an object is managed; the only value is ModeIgnore.
	Mode = "resources.gardener.cloud/mode"
	// ModeIgnore drops the object from the inventory: it is neither applied nor deleted.
	ModeIgnore = "Ignore"
	// KeepObject `true` protects an object from pruning and from the deletion of its
	// ManagedResource.
	KeepObject = "resources.gardener.cloud/keep-object"
	// DeleteOnInvalidUpdate `true` deletes an object whose update the server rejects as invalid, so
	// that it is recreated.
	DeleteOnInvalidUpdate = "resources.gardener.cloud/delete-on-invalid-update"
	// DeletionPropagationOnInvalidUpdate sets the propagation of that deletion: Foreground,
	// Background or Orphan.
	DeletionPropagationOnInvalidUpdate = "resources.gardener.cloud/deletion-propagation-on-invalid-update"
	// PreserveReplicas `true` preserves the live number of replicas.
	PreserveReplicas = "resources.gardener.cloud/preserve-replicas"
	// PreserveResources `true` preserves the live resource requests and limits of containers.
	PreserveResources = "resources.gardener.cloud/preserve-resources"
	// SkipHealthCheck `true` excludes an object from health and progressing checks.
	SkipHealthCheck = "resources.gardener.cloud/skip-health-check"
	// FinalizeDeletionAfter is a duration after which finalizers of an object in deletion are
	// removed.
	FinalizeDeletionAfter = "resources.gardener.cloud/finalize-deletion-after"
	// Origin names the ManagedResource an object comes from: `[<cluster id>:]<namespace>/<name>`.
	Origin = "resources.gardener.cloud/origin"
	// Description is the hint on applied objects that changes to them do not last.
	Description = "resources.gardener.cloud/description"
	// ReferenceAnnotationPrefix starts annotations that protect referenced garbage-collectable
	// Secrets and ConfigMaps: `<prefix>{secret|configmap}-<8 hex of sha256(name)>` with the name as
	// value.
	ReferenceAnnotationPrefix = "reference.resources.gardener.cloud/"
)

// Labels used with ManagedResources.
const (
	// ManagedBy marks objects applied by a resource manager.
	ManagedBy = "resources.gardener.cloud/managed-by"
	// ManagedByGardener is the value of ManagedBy.
	ManagedByGardener = "gardener"
	// GarbageCollectableReference marks Secrets and ConfigMaps that are deleted once no object
	// refers to them.
	GarbageCollectableReference = "resources.gardener.cloud/garbage-collectable-reference"
	// GarbageCollectableReferenceTrue is the value of GarbageCollectableReference.
	GarbageCollectableReferenceTrue = "true"
	// LabelOrigin is the component that created a ManagedResource for a shoot-like cluster:
	// `gardener` or `gardener-operator`.
	LabelOrigin = "origin"
	// LabelPurpose marks Secrets for the token requestor.
	LabelPurpose = "resources.gardener.cloud/purpose"
	// LabelPurposeTokenRequestor is the value of LabelPurpose for access Secrets.
	LabelPurposeTokenRequestor = "token-requestor"
	// LabelClass is the class of an access Secret, `garden` or `shoot`.
	LabelClass = "resources.gardener.cloud/class"
)

// Names of the ManagedResource contract.
const (
	// FinalizerName is the finalizer of the default class; other classes append `-<class>`.
	FinalizerName = "resources.gardener.cloud/gardener-resource-manager"
	// ClassDefault is the class that an unset or empty spec.class means.
	ClassDefault = "resources"
	// ClassSeed is the class of ManagedResources for the cluster that stores them.
	ClassSeed = "seed"
	// ClassAll makes a resource manager handle every class.
	ClassAll = "*"
	// CompressedDataKey is the key in the data Secret of a ManagedResource: brotli-compressed YAML.
	CompressedDataKey = "data.yaml.br"
	// BrotliCompressionSuffix marks data keys with brotli-compressed values.
	BrotliCompressionSuffix = ".br"
)
