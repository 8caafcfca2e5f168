// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ErrorCode is the class of a failure for users and operators. It shows who has to act and whether
// a retry can help.
type ErrorCode string

const (
	// ErrorInfraUnauthenticated means that the infrastructure rejects the credentials. Not retried.
	ErrorInfraUnauthenticated ErrorCode = "ERR_INFRA_UNAUTHENTICATED"
	// ErrorInfraUnauthorized means that the credentials lack a permission on the infrastructure.
	// Not retried.
	ErrorInfraUnauthorized ErrorCode = "ERR_INFRA_UNAUTHORIZED"
	// ErrorInfraQuotaExceeded means that a quota of the infrastructure account is exhausted. Not
	// retried.
	ErrorInfraQuotaExceeded ErrorCode = "ERR_INFRA_QUOTA_EXCEEDED"
	// ErrorInfraRateLimitsExceeded means that the infrastructure throttles requests. It fails the
	// operation; the retry controller restarts it after a pause.
	ErrorInfraRateLimitsExceeded ErrorCode = "ERR_INFRA_RATE_LIMITS_EXCEEDED"
	// ErrorInfraDependencies means that foreign objects in the infrastructure account block the
	// operation. Not retried.
	ErrorInfraDependencies ErrorCode = "ERR_INFRA_DEPENDENCIES"
	// ErrorRetryableInfraDependencies is like ErrorInfraDependencies, but expected to resolve
	// itself.
	ErrorRetryableInfraDependencies ErrorCode = "ERR_RETRYABLE_INFRA_DEPENDENCIES"
	// ErrorInfraResourcesDepleted means that the infrastructure has no capacity left for a
	// resource.
	ErrorInfraResourcesDepleted ErrorCode = "ERR_INFRA_RESOURCES_DEPLETED"
	// ErrorCleanupClusterResources means that objects in the cluster could not be deleted.
	ErrorCleanupClusterResources ErrorCode = "ERR_CLEANUP_CLUSTER_RESOURCES"
	// ErrorConfigurationProblem means that the declaration or the user's workload is at fault. Not
	// retried.
	ErrorConfigurationProblem ErrorCode = "ERR_CONFIGURATION_PROBLEM"
	// ErrorRetryableConfigurationProblem is like ErrorConfigurationProblem, but expected to resolve
	// itself.
	ErrorRetryableConfigurationProblem ErrorCode = "ERR_RETRYABLE_CONFIGURATION_PROBLEM"
	// ErrorProblematicWebhook means that an admission webhook of the user blocks Gardener. Not
	// retried.
	ErrorProblematicWebhook ErrorCode = "ERR_PROBLEMATIC_WEBHOOK"
)

// IsRetryable reports whether a retry without an outside change can help. Codes that are not
// retryable end the operation in state Failed.
func (c ErrorCode) IsRetryable() bool {
	switch c {
	case ErrorInfraUnauthenticated, ErrorInfraUnauthorized, ErrorInfraQuotaExceeded, ErrorInfraRateLimitsExceeded,
		ErrorInfraDependencies, ErrorConfigurationProblem, ErrorProblematicWebhook:
		return false
	default:
		return true
	}
}
