// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// testImmutableField: an immutable field and its derived objects are not changed. The rest is
// applied, and the landscape converges when the change is reverted.
func testImmutableField(t *testing.T, s *testStage) {
	before := s.snapshot()
	undo := s.editWithUndo("projects/local/shoot.yaml", "services: 100.72.0.0/13", "services: 100.80.0.0/13")
	dry := s.cli("apply", s.dir, "--dry-run")
	assert.Equal(t, 1, dry.run(t))
	assert.Contains(t, dry.stdout.String(), "Shoot garden-local/local: ")
	assert.Contains(t, dry.stdout.String(), "spec.networking.services")

	problems, _, _ := s.applyExpectingError()
	all := strings.Join(problems, "\n")
	assert.Contains(t, all, "Shoot garden-local/local: ")
	assert.Contains(t, all, "spec.networking.services")
	assert.Contains(t, all, "shoot garden-local/local: not reconciled, because its declaration could not be applied")
	assert.Empty(t, before.without(s.snapshot()), "nothing was written for it")
	undo()
	report, c := s.mustApply()
	assert.Empty(t, report.Held)
	assert.Empty(t, c.writtenObjects())
}
