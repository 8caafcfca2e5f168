// SPDX-License-Identifier: Apache-2.0

package permit

import (
	"testing"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/change"
)

func TestHeldReason(t *testing.T) {
	unreviewed := change.Reason{Code: landscapev1alpha1.HeldNotReviewed}
	protected := change.Reason{Code: landscapev1alpha1.HeldProtectedKind, Kind: "Namespace"}
	for name, test := range map[string]struct{ reason, before, want change.Reason }{
		"new":               {unreviewed, change.Reason{}, unreviewed},
		"never reviewed":    {unreviewed, unreviewed, unreviewed},
		"by the gate":       {protected, unreviewed, protected},
		"by the gate still": {unreviewed, protected, asEarlier(protected)},
		"and once more":     {unreviewed, asEarlier(protected), asEarlier(protected)},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, HeldReason(test.reason, test.before)) })
	}
	assert.Equal(t, "it is still held: kind Namespace is protected", asEarlier(protected).String())
}
