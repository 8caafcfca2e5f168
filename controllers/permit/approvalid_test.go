package permit

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestApprovalsCountOnce: what has passed is used, in the order in which it was approved, and what is approved no more is forgotten.
func TestApprovalsCountOnce(t *testing.T) {
	for name, test := range map[string]struct {
		approved, used, passed []string
		// open before, used afterwards.
		open, after []string
	}{
		"nothing passed":        {approved: []string{"a"}, open: []string{"a"}},
		"passed":                {approved: []string{"a", "b"}, passed: []string{"a"}, open: []string{"a", "b"}, after: []string{"a"}},
		"passed again":          {approved: []string{"a", "a-2"}, used: []string{"a"}, passed: []string{"a"}, open: []string{"a"}, after: []string{"a", "a-2"}},
		"used":                  {approved: []string{"a"}, used: []string{"a"}, passed: []string{"a"}, after: []string{"a"}},
		"taken back":            {approved: []string{"b"}, used: []string{"a"}, open: []string{"b"}},
		"the second before one": {approved: []string{"a-2"}, passed: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.open, OpenIDs(test.approved, test.used))
			assert.ElementsMatch(t, test.after, UseUp(test.approved, test.used, test.passed))
		})
	}
	assert.Empty(t, ShownID("", []string{""}), "what has no id gets none")
}
