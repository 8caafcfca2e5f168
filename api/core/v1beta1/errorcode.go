package v1beta1

// ErrorCode is the class of a failure, as users and operators see it. It tells whose turn it is, and whether
// trying again can help.
type ErrorCode string

const (
	// ErrorInfraUnauthenticated says that the infrastructure rejects the credentials. Not retried.
	ErrorInfraUnauthenticated ErrorCode = "ERR_INFRA_UNAUTHENTICATED"
	// ErrorInfraUnauthorized says that the credentials lack a permission on the infrastructure. Not retried.
	ErrorInfraUnauthorized ErrorCode = "ERR_INFRA_UNAUTHORIZED"
	// ErrorInfraQuotaExceeded says that a quota of the infrastructure account is used up. Not retried.
	ErrorInfraQuotaExceeded ErrorCode = "ERR_INFRA_QUOTA_EXCEEDED"
	// ErrorInfraRateLimitsExceeded says that the infrastructure throttles requests. Fails the operation; the
	// retry controller starts it again after a pause.
	ErrorInfraRateLimitsExceeded ErrorCode = "ERR_INFRA_RATE_LIMITS_EXCEEDED"
	// ErrorInfraDependencies says that foreign objects in the infrastructure account are in the way. Not retried.
	ErrorInfraDependencies ErrorCode = "ERR_INFRA_DEPENDENCIES"
	// ErrorRetryableInfraDependencies is like ErrorInfraDependencies, but expected to pass by itself.
	ErrorRetryableInfraDependencies ErrorCode = "ERR_RETRYABLE_INFRA_DEPENDENCIES"
	// ErrorInfraResourcesDepleted says that the infrastructure has no capacity left for a resource.
	ErrorInfraResourcesDepleted ErrorCode = "ERR_INFRA_RESOURCES_DEPLETED"
	// ErrorCleanupClusterResources says that objects in the cluster could not be deleted.
	ErrorCleanupClusterResources ErrorCode = "ERR_CLEANUP_CLUSTER_RESOURCES"
	// ErrorConfigurationProblem says that the declaration or the user's workload is at fault. Not retried.
	ErrorConfigurationProblem ErrorCode = "ERR_CONFIGURATION_PROBLEM"
	// ErrorRetryableConfigurationProblem is like ErrorConfigurationProblem, but expected to pass by itself.
	ErrorRetryableConfigurationProblem ErrorCode = "ERR_RETRYABLE_CONFIGURATION_PROBLEM"
	// ErrorProblematicWebhook says that an admission webhook of the user blocks Gardener. Not retried.
	ErrorProblematicWebhook ErrorCode = "ERR_PROBLEMATIC_WEBHOOK"
)

// Retryable says whether an operation that failed with this code is worth trying again without a change from
// outside. Codes that are not retryable end the operation in state Failed.
func (c ErrorCode) Retryable() bool {
	switch c {
	case ErrorInfraUnauthenticated, ErrorInfraUnauthorized, ErrorInfraQuotaExceeded, ErrorInfraRateLimitsExceeded,
		ErrorInfraDependencies, ErrorConfigurationProblem, ErrorProblematicWebhook:
		return false
	default:
		return true
	}
}
