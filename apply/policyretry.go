// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"strings"
	"time"
)

const (
	// policyRetryInterval is the interval of retries for an object that a policy without its
	// parameters refuses.
	policyRetryInterval = 2 * time.Second
	// policyRetryTimeout limits these retries. API servers look for kinds that are new to their
	// policies every 30 seconds. Source: k8s.io/apiserver, the mapper of admission plug-ins
	// (cmd/kube-apiserver: start-kube-apiserver-admission-initializer).
	policyRetryTimeout = 45 * time.Second
)

// isPolicyNotReady reports whether a ValidatingAdmissionPolicy refuses only because the API server
// does not know the policy's parameter kind yet, just after that kind was defined.
func isPolicyNotReady(err error) bool {
	status, ok := statusOf(err)
	return ok && isPolicyWithoutParameters(status.Message)
}

func isPolicyWithoutParameters(message string) bool {
	return strings.Contains(message, "failed to configure policy: failed to find resource referenced by paramKind")
}

// waitForPolicyRetry waits for the next retry. It returns false after policyRetryTimeout, or when
// ctx ends.
func (c *Cluster) waitForPolicyRetry(ctx context.Context, began time.Time) bool {
	if c.clock.Since(began) >= policyRetryTimeout {
		return false
	}
	timer := c.clock.NewTimer(policyRetryInterval)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
