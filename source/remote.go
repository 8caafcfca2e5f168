// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Remote is a repository or an artifact on a server. Its methods are safe for concurrent use; all
// errors are of type Error.
type Remote interface {
	// Resolve returns the current head of the reference. It is one request, and transfers nothing.
	Resolve(ctx context.Context) (Head, error)
	// Fetch transfers the missing objects of a head and verifies it. If the verification of a
	// required tag fails, the snapshot has the current tag of the reference, provided that it is of
	// the same commit.
	Fetch(ctx context.Context, head Head) (*Snapshot, error)
	// At returns an earlier revision: a commit, or the digest of an artifact. It verifies required
	// signatures as well. Cached revisions need no request.
	At(ctx context.Context, commit string) (*Snapshot, error)
	// Close releases connections. The cache stays.
	Close() error
}

// Head is the target of a reference. Equal heads are the same revision.
type Head struct {
	// Name is the name of the branch or tag; it is empty if only a commit or digest was requested.
	Name string
	// Commit is the commit in hexadecimal, or the digest of an artifact (`sha256:…`).
	Commit string
	// Tag is the object of an annotated tag; it is empty for branches and lightweight tags.
	Tag string
}

// Revision returns the format for people and statuses: `main@sha1:…`, `latest@sha256:…`.
func (h Head) Revision() string {
	if h.Commit == "" {
		return h.Name
	}
	digest := h.Commit
	if !strings.Contains(digest, ":") {
		digest = "sha1:" + digest
	}
	if h.Name == "" {
		return digest
	}
	return h.Name + "@" + digest
}

// ParseRevision parses the format of Revision. It also accepts a bare commit.
func ParseRevision(revision string) (Head, error) {
	name, digest := "", revision
	if i := strings.LastIndex(revision, "@"); i >= 0 {
		name, digest = revision[:i], revision[i+1:]
	}
	commit := strings.TrimPrefix(digest, "sha1:")
	if !isCommit(commit) && !isDigest(commit) {
		return Head{}, fmt.Errorf("%q is not a revision: give it as main@sha1:<40 digits> or tag@sha256:<64 digits>", boundedLine(revision, 200))
	}
	return Head{Name: name, Commit: commit}, nil
}

// ShortRevision abbreviates the digits of a revision: main@0a1b2c3d4e, latest@sha256:0a1b2c3d4e5f.
func ShortRevision(revision string) string {
	name, digest, named := strings.Cut(revision, "@")
	if !named {
		name, digest = "", revision
	} else {
		name += "@"
	}
	kind, digits, found := strings.Cut(digest, ":")
	switch {
	case !found:
		return name + shortDigits(digest, 10)
	case kind == "sha1":
		return name + shortDigits(digits, 10)
	}
	return name + kind + ":" + shortDigits(digits, 12)
}

func shortDigits(s string, n int) string { return s[:min(len(s), n)] }

// Snapshot is the files of one revision.
type Snapshot struct {
	Head
	// FS has the files. It is an fs.ReadLinkFS that does not follow links. Files are read when they
	// are opened.
	FS fs.FS
	// Author and Subject are the author and the subject of the commit, on one line each.
	Author, Subject string
	// Time the commit was made; for an artifact its creation time, if it has one.
	Time time.Time
	// Signer is the signing key and its owner; it is empty if no signature is required.
	Signer string
	// Rewritten is the previous commit of a force-pushed branch, empty otherwise. It stays until
	// the branch moves on.
	Rewritten string
	// Origin is the source and revision that an artifact declares.
	Origin string
}

func isCommit(text string) bool { return len(text) == 40 && isHex(text) }

func isDigest(text string) bool {
	rest, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(rest) == 64 && isHex(rest)
}

func isHex(text string) bool {
	return strings.Trim(text, "0123456789abcdef") == ""
}
