package seedpublication

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/plan"
)

func TestStillHeld(t *testing.T) {
	const protected = "kind Namespace is protected"
	for name, test := range map[string]struct{ reason, before, want string }{
		"new":               {plan.NotReviewed, "", plan.NotReviewed},
		"never reviewed":    {plan.NotReviewed, plan.NotReviewed, plan.NotReviewed},
		"by the gate":       {protected, plan.NotReviewed, protected},
		"by the gate still": {plan.NotReviewed, protected, "it is held since before: " + protected},
		"and once more":     {plan.NotReviewed, "it is held since before: " + protected, "it is held since before: " + protected},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, StillHeld(test.reason, test.before)) })
	}
}
