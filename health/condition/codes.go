// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"regexp"
	"slices"
	"sync"

	"github.com/pergola-dev/pergola/api/core/v1beta1"
)

// codePatterns are the texts by which Gardener's core classifies errors. Extensions report the
// codes of the infrastructure themselves (reference gardenlet, section 7).
var codePatterns = sync.OnceValue(func() map[v1beta1.ErrorCode]*regexp.Regexp {
	return map[v1beta1.ErrorCode]*regexp.Regexp{
		v1beta1.ErrorConfigurationProblem: regexp.MustCompile(
			`(?i)(KubeletHasInsufficientMemory|KubeletHasDiskPressure|KubeletHasInsufficientPID|error during apply of object .* is invalid:)`),
		v1beta1.ErrorInfraQuotaExceeded: regexp.MustCompile(`(?i)(LimitExceeded|Quotas|Quota.*exceeded|exceeded quota|Quota has been met|QUOTA_EXCEEDED)`),
	}
})

// requestLimitPattern is throttling, not a quota.
var requestLimitPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)RequestLimitExceeded`) })

// Codes returns the error codes that match a text, sorted, or none if there are none.
func Codes(text string) []v1beta1.ErrorCode {
	var out []v1beta1.ErrorCode
	for code, pattern := range codePatterns() {
		tested := text
		if code == v1beta1.ErrorInfraQuotaExceeded {
			tested = requestLimitPattern().ReplaceAllString(text, "")
		}
		if pattern.MatchString(tested) {
			out = append(out, code)
		}
	}
	slices.Sort(out)
	return out
}

// IsRetryable reports whether an operation that failed with these codes can be retried; without
// codes it can.
func IsRetryable(codes []v1beta1.ErrorCode) bool {
	return !slices.ContainsFunc(codes, func(c v1beta1.ErrorCode) bool { return !c.IsRetryable() })
}
