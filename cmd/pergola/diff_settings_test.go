// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/plan"
)

// TestDiffShowsSettings: all formats show changed settings, and the exit code is that of a change.
func TestDiffShowsSettings(t *testing.T) {
	dir, commit := repository(t)
	replaceIn(t, dir, "landscape.yaml", "spec:\n", "spec:\n  review: Required\n")
	commit()
	replaceIn(t, dir, "landscape.yaml", "  review: Required\n", "")
	commit()
	const note = "landscape.yaml: spec.review: Required → (none, default Optional): less protection: deletions that no review shows are no longer held"
	for _, format := range []string{plan.FormatText, plan.FormatMarkdown, plan.FormatHTML} {
		o := pergola(t, "diff", dir, "--from", "HEAD~1", "-o", format)
		assert.Equal(t, 1, o.code, "%+v", o)
		assert.Contains(t, o.stdout, note, format)
		assert.Contains(t, pergola(t, "diff", "--all", dir, "--from", "HEAD~1", "-o", format).stdout, note, format)
	}
	p := decode[change.Plan](t, pergola(t, "diff", dir, "--from", "HEAD~1", "-o", "json"))
	require.Len(t, p.Notes, 1)
	assert.Contains(t, p.Notes[0], note)
	assert.Empty(t, p.Items)
	assert.Equal(t, 1, p.ChangedSettings)

	// The last line must not say that nothing changes, because often only that line is visible.
	o := pergola(t, "diff", dir, "--from", "HEAD~1")
	assert.Regexp(t, `\nNo object changes \(\d+ objects in bundles and declarations unchanged\), but 1 setting of landscape.yaml: see the notes\.[^\n]*\n$`, o.stdout)
	o = pergola(t, "diff", "--all", dir, "--from", "HEAD~1", "-o", "markdown")
	assert.NotContains(t, o.stdout, "No changes")
	assert.Contains(t, o.stdout, " 1 landscape changes: ")
}

// TestValidateWarnsOfLessProtection: validate warns at the field, with the text of diff, and only
// about less protection.
func TestValidateWarnsOfLessProtection(t *testing.T) {
	dir, commit := repository(t)
	replaceIn(t, dir, "landscape.yaml", "spec:\n", "spec:\n  review: Required\n  deletionGate: {maxDeletions: 5, maxShare: 40%}\n")
	commit()
	o := pergola(t, "validate", dir, "--from", "HEAD~1")
	assert.Equal(t, 0, o.code, "%+v", o)
	assert.NotContains(t, o.stdout, "protection", "more review and fewer deletions")

	replaceIn(t, dir, "landscape.yaml", "  review: Required\n  deletionGate: {maxDeletions: 5, maxShare: 40%}\n", "  deletionGate: {maxDeletions: 9, maxShare: 30%}\n")
	o = pergola(t, "validate", dir, "--from", "HEAD")
	assert.Equal(t, 0, o.code, "%+v", o)
	const review = "spec.review: Required → (none, default Optional): less protection: deletions that no review shows are no longer held"
	const limit = "spec.deletionGate.maxDeletions: 5 → 9: less protection: more objects may be deleted and recreated without an approval"
	for _, want := range []string{review, limit} {
		assert.Contains(t, o.stdout, "warning: Landscape small: "+want)
		assert.Contains(t, pergola(t, "diff", dir).stdout, "landscape.yaml: "+want)
	}
	assert.Contains(t, o.stdout, "landscape.yaml:6:32: warning: Landscape small: "+limit)
	assert.NotContains(t, o.stdout, "maxShare: 40")
	assert.Equal(t, 1, pergola(t, "validate", dir, "--from", "HEAD", "--strict").code)
	assert.NotContains(t, pergola(t, "validate", dir).stdout, "protection")
}
