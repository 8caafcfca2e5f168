// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestCUESyntaxErrorsSayWhatIsWrong: a message describes the fault and never quotes a value.
func TestCUESyntaxErrorsSayWhatIsWrong(t *testing.T) {
	_, violations := parse(t, "a.cue", "a: \"hunter2\n", Options{})
	assert.Equal(t, []string{"a.cue:1:4 Invalid string literal not terminated"}, summaries(violations)[:1])
	assert.NotContains(t, summaries(violations)[0], "hunter2")
}
