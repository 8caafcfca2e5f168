package source

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Remote is a repository or an artifact somewhere else. Its methods may be called at the same time;
// all give errors of type Error.
type Remote interface {
	// Resolve asks what the reference names now. It is one request, and nothing is transferred.
	Resolve(ctx context.Context) (Head, error)
	// Fetch transfers what is missing of a head and verifies it. What was fetched before is not
	// transferred again. Where the signature of a tag is demanded and that of the head does not do,
	// the snapshot has the one that the reference chooses now, if it is of the same commit.
	Fetch(ctx context.Context, head Head) (*Snapshot, error)
	// At gives a former revision: a commit, or the digest of an artifact. Signatures are demanded
	// of it as well. What was fetched before comes from the cache without a request.
	At(ctx context.Context, commit string) (*Snapshot, error)
	// Close releases connections. The cache stays.
	Close() error
}

// Head is what a reference names. Two are the same when they are equal.
type Head struct {
	// Name of the branch or tag; empty when only a commit or digest was asked for.
	Name string
	// Commit in hexadecimal, or the digest of an artifact (`sha256:…`).
	Commit string
	// Tag is the object of an annotated tag; empty for branches and plain tags.
	Tag string
}

// Revision is the form in which people and statuses name it: `main@sha1:…`, `latest@sha256:…`.
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

// ParseRevision reads what Revision wrote. A bare commit is taken, too.
func ParseRevision(revision string) (Head, error) {
	name, digest := "", revision
	if i := strings.LastIndex(revision, "@"); i >= 0 {
		name, digest = revision[:i], revision[i+1:]
	}
	commit := strings.TrimPrefix(digest, "sha1:")
	if !isCommit(commit) && !isDigest(commit) {
		return Head{}, fmt.Errorf("%q is no revision: give it as main@sha1:<40 digits> or tag@sha256:<64 digits>", printable(revision, 200))
	}
	return Head{Name: name, Commit: commit}, nil
}

// ShortRevision is a revision with as many digits as tell it from others: main@0a1b2c3d4e,
// latest@sha256:0a1b2c3d4e5f.
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

// Snapshot is one revision as files.
type Snapshot struct {
	Head
	// FS has the files. It is an fs.ReadLinkFS: links are seen and not followed. Files are read
	// when they are opened.
	FS fs.FS
	// Author and Subject of the commit, on one line each.
	Author, Subject string
	// When it was committed; for an artifact when it was made, if it says so.
	When time.Time
	// Signer is the key that signed, with whom it belongs to; empty when no signature is demanded.
	Signer string
	// Rewritten is the former commit of a branch that was pushed over, empty otherwise. It stays
	// until the branch moves on.
	Rewritten string
	// Origin is where an artifact says that it comes from: its source and revision.
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
