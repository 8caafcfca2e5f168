// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

// TestSignedTagOfAKnownCommit: a signed tag is pushed after the verification of a fetched commit
// failed. It is fetched, also with a head that was resolved before.
func TestSignedTagOfAKnownCommit(t *testing.T) {
	const (
		refs = "GET /landscape.git/info/refs?service=git-upload-pack"
		pack = "POST /landscape.git/git-upload-pack"
	)
	ada, mallory := pgpKey(t, "Ada", 0), pgpKey(t, "Mallory", 0)
	by := func(p string) string { return pgpSign(t, ada, p, crypto.SHA256) }
	for name, c := range map[string]struct {
		// former signs the first tag, which is lightweight if nil; next signs the second tag, if
		// there is one.
		former, next func(string) string
		// tag that is pushed second.
		tag string
		ref landscapev1alpha1.Reference
		// resolved says that the reference is resolved again in between.
		resolved bool
		requests []string
		err      string
	}{
		"resolved again":         {next: by, tag: "v1.4.0", resolved: true, requests: []string{refs, pack}},
		"head of before":         {next: by, tag: "v1.4.0", requests: []string{refs, pack}},
		"unsigned before":        {former: func(string) string { return "" }, next: by, tag: "v1.4.0", requests: []string{refs, pack}},
		"same name":              {ref: landscapev1alpha1.Reference{Tag: "v1.3.0"}, next: by, tag: "v1.3.0", requests: []string{refs, pack}},
		"signed by somebody":     {next: func(p string) string { return pgpSign(t, mallory, p, crypto.SHA256) }, tag: "v1.4.0", requests: []string{refs, pack}, err: "tag v1.4.0 of commit"},
		"a version that is less": {next: by, tag: "v1.2.0", requests: []string{refs}, err: "tag v1.3.0 of commit"},
		"no new tag":             {requests: []string{refs}, err: "tag v1.3.0 of commit"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			repo := gittest.New(t, root, "landscape")
			repo.PushFile("a.yaml", "1", "one")
			commit := signCommit(t, repo, "main", by)
			tag := func(name string, sign func(string) string) {
				payload := fmt.Sprintf("object %s\ntype commit\ntag %s\ntagger Ada <ada@example.com> 1767322000 +0000\n\nversion\n", commit, name)
				writeGitObject(t, repo, "tag", payload+sign(payload), "refs/tags/"+name)
			}
			if c.former != nil {
				tag("v1.3.0", c.former)
			} else {
				repo.Git("push", "--quiet", "origin", commit+":refs/tags/v1.3.0")
			}
			ref := c.ref
			if ref.Tag == "" {
				ref.SemVer = ">=1.0.0 <2"
			}
			server := gittest.ServeHTTP(t, root)
			r := newTestRemote(t, Options{URL: server.URL + "/landscape.git", Ref: ref,
				Verify: &Verification{Mode: landscapev1alpha1.VerifyTagAndHEAD, Keys: map[string][]byte{"a": armored(t, ada)}}})
			head, err := r.Resolve(t.Context())
			require.NoError(t, err)
			_, err = r.Fetch(t.Context(), head)
			requireReason(t, ReasonVerificationFailed, err)
			require.ErrorContains(t, err, "tag v1.3.0 of commit "+commit)

			if c.next != nil {
				tag(c.tag, c.next)
			}
			server.ResetCounters()
			if c.resolved {
				head, err = r.Resolve(t.Context())
				require.NoError(t, err)
			}
			s, err := r.Fetch(t.Context(), head)
			requests, _ := server.ResetCounters()
			assert.Equal(t, c.requests, requests)
			if c.err != "" {
				requireReason(t, ReasonVerificationFailed, err)
				require.ErrorContains(t, err, c.err+" "+commit)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.tag+"@sha1:"+commit, s.Revision())
			assert.NotEmpty(t, s.Tag)
			server.ResetCounters()
			_, err = r.At(t.Context(), commit)
			require.NoError(t, err, "its tag is remembered")
			requests, _ = server.ResetCounters()
			assert.Empty(t, requests)

			lost := newTestRemote(t, Options{URL: server.URL + "/landscape.git", Ref: ref, Dir: t.TempDir(),
				Verify: &Verification{Mode: landscapev1alpha1.VerifyTagAndHEAD, Keys: map[string][]byte{"a": armored(t, ada)}}})
			for range 2 {
				s, err = lost.At(t.Context(), commit)
				require.NoError(t, err, "a cache that was lost asks for the tag")
			}
			assert.NotEmpty(t, s.Tag)
		})
	}
}
