package health

import "fmt"

// Failure says why an object is not healthy.
type Failure struct {
	// Reason in CamelCase; empty where `<Kind>Unhealthy` says it all.
	Reason string
	// Message for a person.
	Message string
	// Codes are Gardener's error codes (ERR_…) that the object reports for its trouble.
	Codes []string
	// Waiting means that nothing has gone wrong yet: a controller has still to act or to report.
	Waiting bool
	// Severe means that the trouble will not pass by itself, so that a wait can end early.
	Severe bool
}

// Error gives the message.
func (f *Failure) Error() string { return f.Message }

func failf(format string, args ...any) *Failure {
	return &Failure{Message: fmt.Sprintf(format, args...)}
}

func waitf(format string, args ...any) *Failure {
	return &Failure{Message: fmt.Sprintf(format, args...), Waiting: true}
}

// asError keeps a nil Failure from becoming a non-nil error.
func asError(f *Failure) error {
	if f == nil {
		return nil
	}
	return f
}
