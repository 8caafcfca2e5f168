package seedpublication

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/controllers/permit"
)

func TestStillHeld(t *testing.T) {
	const protected = "kind Namespace is protected"
	for name, test := range map[string]struct{ reason, before, want string }{
		"new":               {permit.NotReviewed, "", permit.NotReviewed},
		"never reviewed":    {permit.NotReviewed, permit.NotReviewed, permit.NotReviewed},
		"by the gate":       {protected, permit.NotReviewed, protected},
		"by the gate still": {permit.NotReviewed, protected, "it is held since before: " + protected},
		"and once more":     {permit.NotReviewed, "it is held since before: " + protected, "it is held since before: " + protected},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, StillHeld(test.reason, test.before)) })
	}
}
