// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/source/signature"
)

// gitRemote is a remote Git repository.
type gitRemote struct {
	options  Options
	location *url.URL
	keys     *signature.Keys
	wire     wire
	// submoduleDepth is the depth of this repository among nested submodules.
	submoduleDepth int

	// capabilities are the capabilities of the server, from its last answer.
	capabilities atomic.Pointer[capability.List]
	// transferSlot permits one transfer at a time.
	transferSlot chan struct{}

	// mutex guards the fields below, and the notes of the cache.
	mutex     sync.Mutex
	cache     *gitCache
	temporary bool
	// checkedTrees are the trees of complete commits, by commit.
	checkedTrees     map[string]*TreeFS
	submoduleRemotes map[string]*gitRemote
	// submoduleCount counts the submodules of a repository, including nested ones.
	submoduleCount *atomic.Int32
}

// maxCachedRevisions bounds the revisions whose folders stay in memory.
const maxCachedRevisions = 4

func newGitRemote(options Options, location *url.URL, trusted *signature.Keys) (*gitRemote, error) {
	connection, err := newWire(options, location)
	if err != nil {
		return nil, err
	}
	return &gitRemote{options: options, location: location, keys: trusted, wire: connection, transferSlot: make(chan struct{}, 1),
		checkedTrees: map[string]*TreeFS{}, submoduleRemotes: map[string]*gitRemote{}, submoduleCount: &atomic.Int32{}}, nil
}

func (r *gitRemote) displayURL() string { return r.location.Redacted() }

// Resolve implements Remote. A named commit needs no request.
func (r *gitRemote) Resolve(ctx context.Context) (_ Head, err error) {
	defer r.recoverPanic(&err)
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	if ref := r.options.Ref; ref.Commit != "" {
		name := ref.Branch
		if name == "" {
			name = ref.Tag
		}
		return Head{Name: name, Commit: ref.Commit}, nil
	}
	return r.resolve(ctx)
}

// resolve asks the server for the commit of a branch or tag.
func (r *gitRemote) resolve(ctx context.Context) (Head, error) {
	have, err := r.wire.references(ctx)
	if err != nil {
		return Head{}, connectionError(ctx, "ask "+r.displayURL()+" for its references", err)
	}
	r.capabilities.Store(have.Capabilities)
	head, err := headOf(r.options.Ref, have)
	if err != nil {
		return Head{}, err
	}
	cache, err := r.openCache()
	if err != nil {
		return Head{}, err
	}
	if err := r.checkDeletedVersion(cache, have, head); err != nil {
		return Head{}, err
	}
	return head, r.checkTag(cache, head)
}

// checkDeletedVersion refuses to roll back to a lower version because the tag of a higher one was
// deleted: no one has asked for that.
func (r *gitRemote) checkDeletedVersion(cache *gitCache, have *packp.AdvRefs, head Head) error {
	ref := r.options.Ref
	if ref.SemVer == "" {
		return nil
	}
	var seen []string
	r.mutex.Lock()
	for name := range cache.metadata.Tags {
		seen = append(seen, name)
	}
	r.mutex.Unlock()
	return checkDeletedTag(r.options, head.Name, seen, func(name string) bool { _, there := have.References[tagPrefix+name]; return there })
}

// isTagFollowed reports whether heads are tags, which do not move.
func (r *gitRemote) isTagFollowed() bool {
	ref := r.options.Ref
	return ref.Commit == "" && (ref.Tag != "" || ref.SemVer != "")
}

// checkTag rejects a tag that points to a different commit than before.
func (r *gitRemote) checkTag(cache *gitCache, head Head) error {
	if !r.isTagFollowed() {
		return nil
	}
	r.mutex.Lock()
	former := cache.metadata.Tags[head.Name]
	r.mutex.Unlock()
	if former == "" {
		if applied, err := ParseRevision(r.options.AppliedRevision); err == nil && applied.Name == head.Name {
			former = applied.Commit
		}
	}
	if former == "" || former == head.Commit {
		return nil
	}
	return newError(ReasonTagRewritten, "tag %s moved from commit %s to %s: create a new tag, or accept the move by ref.commit: %s beside the tag for one sync",
		head.Name, former, head.Commit, head.Commit)
}

// Fetch implements Remote.
func (r *gitRemote) Fetch(ctx context.Context, head Head) (_ *Snapshot, err error) {
	defer r.recoverPanic(&err)
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	if !isCommit(head.Commit) {
		return nil, newError(ReasonInvalid, "%q is not a commit", boundedLine(head.Commit, 80))
	}
	if err := r.acquireTransferSlot(ctx); err != nil {
		return nil, err
	}
	defer r.releaseTransferSlot()
	cache, err := r.openCache()
	if err != nil {
		return nil, err
	}
	if err := r.checkTag(cache, head); err != nil {
		return nil, err
	}
	snapshot, err := r.ensureRevision(ctx, cache, head)
	if ReasonOf(err) == ReasonVerificationFailed {
		if newer, ok := r.refreshTag(ctx, head); ok {
			snapshot, err = r.ensureRevision(ctx, cache, newer)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := r.detectForcePush(ctx, cache, snapshot); err != nil {
		return nil, err
	}
	return snapshot, r.recordFetch(cache, snapshot)
}

// refreshTag resolves a tag again if the verification of its commit failed. The user may have
// replaced an unsigned tag by a signed one of the same commit. The head may be older; it differs
// only in the tag object.
func (r *gitRemote) refreshTag(ctx context.Context, head Head) (Head, bool) {
	if !r.isTagFollowed() || !r.isTagVerified() || r.options.Offline {
		return Head{}, false
	}
	newer, err := r.resolve(ctx)
	// The next poll handles a tag of another commit. An error here says less than the failed
	// verification.
	return newer, err == nil && newer.Commit == head.Commit && newer != head
}

// At implements Remote.
func (r *gitRemote) At(ctx context.Context, commit string) (_ *Snapshot, err error) {
	defer r.recoverPanic(&err)
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	if !isCommit(commit) {
		return nil, newError(ReasonInvalid, "%q is not a commit: 40 hexadecimal digits are needed", boundedLine(commit, 80))
	}
	cache, err := r.openCache()
	if err != nil {
		return nil, err
	}
	head := Head{Commit: commit}
	r.mutex.Lock()
	if tag, ok := cache.metadata.TagObjects[commit]; ok {
		head.Tag = tag.Object
	}
	ready := r.checkedTrees[commit] != nil
	r.mutex.Unlock()
	if ready && !cache.needsReset.Load() {
		// A complete revision does not wait for another transfer.
		return r.snapshot(ctx, cache, head)
	}
	if err := r.acquireTransferSlot(ctx); err != nil {
		return nil, err
	}
	defer r.releaseTransferSlot()
	snapshot, err := r.ensureRevision(ctx, cache, head)
	tagged := false
	if head.Tag == "" && ReasonOf(err) == ReasonVerificationFailed {
		if head, tagged = r.findTag(ctx, commit); tagged {
			snapshot, err = r.ensureRevision(ctx, cache, head)
		}
	}
	if err != nil {
		return nil, err
	}
	r.mutex.Lock()
	if tagged {
		cache.metadata.TagObjects = withEntry(cache.metadata.TagObjects, commit, tagRecord{Name: head.Name, Object: head.Tag})
	}
	cache.metadata.markRecent(commit)
	err = cache.saveMetadata()
	r.mutex.Unlock()
	return snapshot, err
}

// findTag asks for the tag of an earlier commit, which a lost cache does not know.
func (r *gitRemote) findTag(ctx context.Context, commit string) (Head, bool) {
	if !r.isTagFollowed() || !r.isTagVerified() || r.options.Offline {
		return Head{}, false
	}
	have, err := r.wire.references(ctx)
	if err != nil {
		return Head{}, false // this error says less than the failed verification
	}
	name := r.options.Ref.Tag
	if versions := r.options.Ref.SemVer; versions != "" {
		var names []string
		for ref, named := range have.Peeled {
			if tag, ok := strings.CutPrefix(ref, tagPrefix); ok && named.String() == commit {
				names = append(names, tag)
			}
		}
		name, _ = highestVersion(versions, names)
	}
	head, ok := tagHead(name, have)
	return head, ok && head.Commit == commit && head.Tag != ""
}

// recoverPanic turns a panic of go-git about damaged objects into an error, so that the cache is
// recreated. It must be deferred directly.
func (r *gitRemote) recoverPanic(err *error) {
	p := recover()
	if p == nil {
		return
	}
	cause := panics.AsError(func() error { panic(p) })()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.cache == nil {
		*err = &Error{Reason: ReasonDamaged, Message: "the content of " + r.displayURL() + " is damaged", Err: newBoundedError(cause)}
		return
	}
	*err = r.cache.objects.recordDamage(cause)
}

// ensureRevision returns a revision, and transfers missing objects. It recreates an incomplete
// cache once.
func (r *gitRemote) ensureRevision(ctx context.Context, cache *gitCache, head Head) (*Snapshot, error) {
	fresh := false
	if cache.needsReset.Load() {
		if err := r.resetCache(cache); err != nil {
			return nil, err
		}
		fresh = true
	}
	for {
		snapshot, err := r.ensureRevisionOnce(ctx, cache, head)
		if err == nil || !cache.needsReset.Load() {
			return snapshot, err
		}
		if fresh {
			return nil, &Error{Reason: ReasonUnreachable, Message: r.displayURL() + ": the server sent an incomplete commit " + head.Commit, Err: newBoundedError(err)}
		}
		if err := r.resetCache(cache); err != nil {
			return nil, err
		}
		fresh = true
	}
}

// ensureRevisionOnce uses the cache in its current state.
func (r *gitRemote) ensureRevisionOnce(ctx context.Context, cache *gitCache, head Head) (snapshot *Snapshot, err error) {
	defer r.recoverPanic(&err)
	if r.isRevisionMissing(cache, head) {
		if err := r.transfer(ctx, cache, head, historyDepth); err != nil {
			return nil, err
		}
	}
	if err := r.checkOnBranch(ctx, cache, head); err != nil {
		return nil, err
	}
	return r.snapshot(ctx, cache, head)
}

func (r *gitRemote) resetCache(cache *gitCache) error {
	if r.options.Offline {
		return notCachedError(r.displayURL())
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	clear(r.checkedTrees)
	return cache.reset()
}

func (r *gitRemote) isRevisionMissing(cache *gitCache, head Head) bool {
	return !cache.hasObject(plumbing.NewHash(head.Commit)) || head.Tag != "" && !cache.hasObject(plumbing.NewHash(head.Tag))
}

// recordFetch records the fetched revision.
func (r *gitRemote) recordFetch(cache *gitCache, snapshot *Snapshot) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	notes := &cache.metadata
	ref := r.options.Ref
	switch {
	case r.isTagFollowed():
		notes.Tags = withEntry(notes.Tags, snapshot.Name, snapshot.Commit)
		if snapshot.Tag != "" {
			notes.TagObjects = withEntry(notes.TagObjects, snapshot.Commit, tagRecord{Name: snapshot.Name, Object: snapshot.Tag})
		}
	case ref.Commit != "" && ref.Branch == "" && ref.Tag != "":
		// A user named the commit beside the tag: from now on the tag means this commit.
		notes.Tags = withEntry(notes.Tags, ref.Tag, snapshot.Commit)
	}
	notes.markRecent(snapshot.Commit)
	if err := cache.saveMetadata(); err != nil {
		return err
	}
	return nil
}

// acquireTransferSlot waits for the turn of this transfer.
func (r *gitRemote) acquireTransferSlot(ctx context.Context) error {
	select {
	case r.transferSlot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return connectionError(ctx, "wait for another fetch of "+r.displayURL(), ctx.Err())
	}
}

func (r *gitRemote) releaseTransferSlot() { <-r.transferSlot }

// openCache opens the cache at the first use.
func (r *gitRemote) openCache() (*gitCache, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.cache != nil {
		return r.cache, nil
	}
	if r.options.Dir == "" {
		dir, err := os.MkdirTemp("", "pergola-source-")
		if err != nil {
			return nil, fmt.Errorf("make the cache: %w", err)
		}
		r.options.Dir, r.temporary = dir, true
	}
	if r.options.Offline && !isCacheOf(r.options.Dir, r.displayURL()) {
		return nil, notCachedError(r.displayURL())
	}
	cache, err := openGitCache(r.options.Dir, r.displayURL())
	if err != nil {
		return nil, &Error{Reason: ReasonUnreachable, Message: "open the cache of " + r.displayURL(), Err: err}
	}
	r.cache = cache
	return cache, nil
}

// Close implements Remote. It waits for a running transfer.
func (r *gitRemote) Close() error {
	r.transferSlot <- struct{}{}
	defer r.releaseTransferSlot()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	err := r.wire.close()
	for _, module := range r.submoduleRemotes {
		_ = module.Close()
	}
	if r.cache != nil {
		r.cache.objects.mutex.Lock()
		_ = r.cache.storage.Close()
		r.cache.objects.mutex.Unlock()
		r.cache = nil
		clear(r.checkedTrees)
	}
	if r.temporary {
		err = os.RemoveAll(r.options.Dir)
		r.options.Dir, r.temporary = "", false
	}
	return err
}
