// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/apply"
)

func TestProblemsAreOneLineEachCausesFirst(t *testing.T) {
	skipped := &apply.ObjectError{Cluster: "seed", Object: apply.Ref{Kind: "ConfigMap", Name: "x"}, Op: "apply", Reason: apply.ReasonSkippedDependency, Message: "not tried"}
	denied := &apply.ObjectError{Cluster: "seed", Object: apply.Ref{Kind: "Secret", Name: "y"}, Op: "apply", Reason: apply.ReasonForbidden, Message: "no", Err: errors.New("inner\ntext")}
	unreachable := func(object, cluster string, cause error) error {
		down := &apply.UnreachableError{Cluster: cluster, Host: "https://" + cluster, Cause: cause}
		return &apply.ObjectError{Cluster: cluster, Object: apply.Ref{Kind: "Garden", Name: object}, Op: "read", Reason: apply.ReasonUnreachable, Message: down.Error(), Hint: "look", Err: down}
	}
	refused := errors.New("refused")
	err := errors.Join(
		fmt.Errorf("garden a: %w", unreachable("a", "runtime", refused)),
		fmt.Errorf("garden b: %w", unreachable("b", "virtual", fmt.Errorf("access: %w", &apply.UnreachableError{Cluster: "runtime", Host: "https://runtime", Cause: refused}))),
		unreachable("c", "other", refused),
		fmt.Errorf("seed local: %w", errors.Join(
			fmt.Errorf("step a: bundle b: %w", apply.Errors{skipped, denied}),
			fmt.Errorf("step c: not healthy in time: %w", errors.Join(errors.New("Deployment d:\n  no pods"), errors.New("Deployment e"))),
		)),
		&apply.FollowsError{Err: errors.New("shoot x: not reconciled")},
		fmt.Errorf("garden: %s and %w as well", "a suffix", errors.New("something")),
		errors.New("last"), errors.New("last"),
	)
	assert.Equal(t, []string{
		"garden a: cluster runtime: Garden a: read: Unreachable: cluster runtime at https://runtime does not answer: refused (look)",
		"cluster other: Garden c: read: Unreachable: cluster other at https://other does not answer: refused (look)",
		"seed local: step a: bundle b: cluster seed: Secret y: apply: Forbidden: no",
		"seed local: step c: not healthy in time: Deployment d: no pods",
		"seed local: step c: not healthy in time: Deployment e",
		"garden: a suffix and something as well",
		"last",
		"garden b: cluster virtual: Garden b: read: Unreachable: cluster runtime does not answer, as above",
		"seed local: step a: bundle b: cluster seed: ConfigMap x: apply: SkippedDependency: not tried",
		"shoot x: not reconciled",
	}, apply.Problems(err))
	assert.Empty(t, apply.Problems(nil))
}
