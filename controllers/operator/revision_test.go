// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source"
)

// TestResolveRevisionFromHistory: names in the history identify revisions of all kinds of sources.
func TestResolveRevisionFromHistory(t *testing.T) {
	commit, digest, other := strings.Repeat("3f2a", 10), "sha256:"+strings.Repeat("7d31", 16), "sha256:7d31"+strings.Repeat("0", 60)
	for revision, shown := range map[string]string{
		"main@sha1:" + commit: "main@3f2a3f2a3f",
		"sha1:" + commit:      "3f2a3f2a3f",
		digest:                "sha256:7d317d317d31",
		"latest@" + digest:    "latest@sha256:7d317d317d31",
	} {
		assert.Equal(t, shown, source.ShortRevision(revision))
		l := &landscapev1alpha1.Landscape{}
		l.Status.History = []landscapev1alpha1.SyncRecord{{Revision: revision}, {Revision: other}}
		for _, called := range []string{shown, strings.TrimPrefix(shown, "latest@"), revision} {
			found, err := resolveRevision(l, called)
			require.NoError(t, err, called)
			assert.Equal(t, commitOf(revision), found, called)
		}
	}
	l := &landscapev1alpha1.Landscape{}
	l.Status.History = []landscapev1alpha1.SyncRecord{{Revision: digest}, {Revision: other}}
	_, err := resolveRevision(l, "sha256:7d31")
	assert.ErrorContains(t, err, `several revisions start with "sha256:7d31"`)
	_, err = resolveRevision(l, "sha256:7d3")
	assert.ErrorContains(t, err, "no revision of the history starts with")
}
