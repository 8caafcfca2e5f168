package apply

import (
	"context"
	"strings"
	"time"
)

const (
	// policyLook is how often an object is sent again that a policy without its parameters refuses.
	policyLook = 2 * time.Second
	// policyPatience is how long that is done. API servers look for kinds that are new to their
	// policies each 30 seconds. Source: k8s.io/apiserver, the mapper that admission plug-ins are
	// given (cmd/kube-apiserver: start-kube-apiserver-admission-initializer).
	policyPatience = 45 * time.Second
)

// isPolicyNotReady tells whether a ValidatingAdmissionPolicy refuses only because the API server
// does not know the kind of the policy's parameters yet, as it is just after that kind was defined.
func isPolicyNotReady(err error) bool {
	status, ok := statusOf(err)
	return ok && isPolicyWithoutParameters(status.Message)
}

func isPolicyWithoutParameters(message string) bool {
	return strings.Contains(message, "failed to configure policy: failed to find resource referenced by paramKind")
}

// policySettles waits until it is worth while to send an object again, and is false when that was
// done for long enough since then.
func (c *Cluster) policySettles(ctx context.Context, began time.Time) bool {
	if c.clock.Since(began) >= policyPatience {
		return false
	}
	timer := c.clock.NewTimer(policyLook)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
