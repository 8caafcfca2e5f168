// SPDX-License-Identifier: Apache-2.0

package health

import "fmt"

// Failure is the reason why an object is not healthy.
type Failure struct {
	// Reason is the reason in CamelCase; empty means `<Kind>Unhealthy`.
	Reason string
	// Message is the message for a person.
	Message string
	// Codes are Gardener's error codes (ERR_…) that the object reports.
	Codes []string
	// Waiting means that nothing has failed yet: a controller still has to act or report.
	Waiting bool
	// Severe means that the failure does not end without a change, so that a wait can end early.
	Severe bool
}

// Error returns the message.
func (f *Failure) Error() string { return f.Message }

func failf(format string, args ...any) *Failure {
	return &Failure{Message: fmt.Sprintf(format, args...)}
}

func waitf(format string, args ...any) *Failure {
	return &Failure{Message: fmt.Sprintf(format, args...), Waiting: true}
}

// toError prevents a nil Failure from becoming a non-nil error.
func toError(f *Failure) error {
	if f == nil {
		return nil
	}
	return f
}
