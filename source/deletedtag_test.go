// SPDX-License-Identifier: Apache-2.0

package source

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestDeletedVersion: the tag of the applied version was deleted. Nothing is rolled back unless the
// range demands it.
func TestDeletedVersion(t *testing.T) {
	repo := gittest.New(t, t.TempDir(), "landscape")
	tagged := func(name, value string) {
		repo.PushFile("a.yaml", value, name)
		repo.Git("push", "--quiet", "origin", "HEAD:refs/tags/"+name)
	}
	tagged("v1.0.0", "1")
	tagged("v1.1.0", "2")
	options := Options{URL: "file://" + repo.Bare, Dir: filepath.Join(t.TempDir(), "cache"), Ref: landscapev1alpha1.Reference{SemVer: ">=1.0.0 <2"}}
	r := newTestRemote(t, options)
	s := resolveAndFetch(t, r)
	assert.Equal(t, "2", readSnapshotFile(t, s, "a.yaml"))

	repo.Git("push", "--quiet", "origin", ":refs/tags/v1.1.0")
	gone := func(options Options) {
		t.Helper()
		_, err := newTestRemote(t, options).Resolve(t.Context())
		requireReason(t, ReasonReferenceNotFound, err)
		require.ErrorContains(t, err, "tag v1.1.0 no longer exists, and v1.0.0, the highest in the range >=1.0.0 <2, is lower")
	}
	gone(options)
	lost := options
	lost.Dir, lost.AppliedRevision = "", s.Revision()
	lost.Dir = filepath.Join(t.TempDir(), "cache")
	gone(lost) // the applied revision suffices
	narrower := options
	narrower.Ref.SemVer = ">=1.0.0 <1.1.0"
	require.NoError(t, r.Close())
	assert.Equal(t, "1", readSnapshotFile(t, resolveAndFetch(t, newTestRemote(t, narrower)), "a.yaml"), "somebody wants to go back")
	tagged("v1.2.0", "3")
	assert.Equal(t, "3", readSnapshotFile(t, resolveAndFetch(t, newTestRemote(t, options)), "a.yaml"), "a higher one is followed")
}
