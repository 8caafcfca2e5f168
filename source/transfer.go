// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/pergola-dev/pergola/internal/panics"
)

const (
	// historyDepth is how many generations of commits are fetched with a new one. It suffices to
	// skip known objects of a merge, and to distinguish a force-push from a moved branch.
	historyDepth = 50
	// searchDepth is how deep the previous commit of a branch that moved far is searched.
	searchDepth = 2000
	// unlimitedDepth is Git's number for an unlimited depth.
	unlimitedDepth = 0x7fffffff
	// maxHaves bounds how many known commits a request names.
	maxHaves = 16
	// maxWalkedCommits bounds a walk through the history.
	maxWalkedCommits = 1_000_000
)

// transfer fetches a head. The server omits objects that the request names as cached.
func (r *gitRemote) transfer(ctx context.Context, cache *gitCache, head Head, depth int) error {
	want := plumbing.NewHash(head.Commit)
	if head.Tag != "" {
		want = plumbing.NewHash(head.Tag)
	}
	var have *packp.AdvRefs
	if r.capabilities.Load() == nil || r.options.Ref.Commit == head.Commit {
		var err error
		if have, err = r.wire.references(ctx); err != nil {
			return connectionError(ctx, "ask "+r.displayURL()+" for its references", err)
		}
		r.capabilities.Store(have.Capabilities)
	}
	wants := []plumbing.Hash{want}
	if have != nil && !isAdvertised(have, want) {
		ref := r.options.Ref
		branch, ok := have.References[branchPrefix+ref.Branch]
		switch {
		case ref.Commit == head.Commit && ref.Branch != "" && !ok:
			return newError(ReasonReferenceNotFound, "the repository has no branch %s", ref.Branch)
		case ref.Commit == head.Commit && ref.Branch != "":
			wants = []plumbing.Hash{branch}
		}
	}
	if r.isHistoryTooLarge(cache) {
		depth = 1
	}
	err := r.requestPack(ctx, cache, wants, depth)
	if ReasonOf(err) == ReasonTooLarge && depth > 1 {
		// The oversized file may be in an older commit and already deleted. Later fetches omit the
		// history, too.
		r.mutex.Lock()
		cache.metadata.WithoutHistory = true
		err = cache.saveMetadata()
		r.mutex.Unlock()
		if err == nil {
			err = r.requestPack(ctx, cache, wants, 1)
		}
	}
	if err == nil && !cache.hasObject(want) || ReasonOf(err) == ReasonReferenceNotFound {
		// The server returns only heads of branches and tags, or the commit is further down: search
		// the whole history.
		if have == nil {
			if have, err = r.wire.references(ctx); err != nil {
				return connectionError(ctx, "ask "+r.displayURL()+" for its references", err)
			}
		}
		if wants[0] == want {
			wants = branchAndTagHeads(have)
		}
		err = r.requestPack(ctx, cache, wants, unlimitedDepth)
	}
	if err != nil {
		return err
	}
	if !cache.hasObject(want) {
		return newError(ReasonReferenceNotFound, "%s has no commit %s, or no branch or tag leads to it now", r.displayURL(), head.Commit)
	}
	return nil
}

// isHistoryTooLarge reports whether the history contains an object that is too large, so commits
// are fetched without history.
func (r *gitRemote) isHistoryTooLarge(cache *gitCache) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return cache.metadata.WithoutHistory
}

func isAdvertised(have *packp.AdvRefs, want plumbing.Hash) bool {
	for _, hash := range have.References {
		if hash == want {
			return true
		}
	}
	return false
}

// requestPack asks for commits and adds the answer to the cache.
func (r *gitRemote) requestPack(ctx context.Context, cache *gitCache, wants []plumbing.Hash, depth int) error {
	if len(wants) == 0 {
		return newError(ReasonReferenceNotFound, "the repository has no branch and no tag")
	}
	server := r.capabilities.Load()
	request := packp.NewUploadPackRequestFromCapabilities(server)
	request.Wants = slices.Clone(wants)
	plumbing.HashesSort(request.Wants)
	request.Wants = slices.Compact(request.Wants)
	if server.Supports(capability.NoProgress) {
		_ = request.Capabilities.Set(capability.NoProgress)
	}
	r.mutex.Lock()
	recent, shallow := slices.Clone(cache.metadata.Recent), slices.Clone(cache.metadata.Shallow)
	r.mutex.Unlock()
	for _, commit := range recent {
		if hash := plumbing.NewHash(commit); len(request.Haves) < maxHaves && cache.hasObject(hash) {
			request.Haves = append(request.Haves, hash)
		}
	}
	if server.Supports(capability.Shallow) {
		_ = request.Capabilities.Set(capability.Shallow)
		request.Depth = packp.DepthCommits(depth)
		if depth == unlimitedDepth && len(shallow) == 0 {
			request.Depth = packp.DepthCommits(0)
		}
		for _, commit := range shallow {
			request.Shallows = append(request.Shallows, plumbing.NewHash(commit))
		}
	}
	answer, err := r.wire.pack(ctx, request)
	if err != nil {
		return connectionError(ctx, "fetch from "+r.displayURL(), err)
	}
	defer answer.Close()
	if err := cache.addPack(ctx, answer, r.options.Limits); err != nil {
		return err
	}
	r.mutex.Lock()
	cache.updateShallow(answer.shallow, answer.unshallow)
	err = cache.saveMetadata()
	r.mutex.Unlock()
	if err != nil {
		return err
	}
	return cache.compact(ctx, r.options.Limits)
}

// updateShallow records which commits lack their parents.
func (c *gitCache) updateShallow(shallow, unshallow []plumbing.Hash) {
	c.objects.mutex.Lock()
	defer c.objects.mutex.Unlock()
	var out []string
	candidates := slices.Clone(c.metadata.Shallow)
	for _, hash := range shallow {
		candidates = append(candidates, hash.String())
	}
	slices.Sort(candidates)
	for _, candidate := range slices.Compact(candidates) {
		hash := plumbing.NewHash(candidate)
		var commit *object.Commit
		if panics.AsError(func() (err error) {
			commit, err = object.GetCommit(c.storage, hash)
			return err
		})() != nil || slices.Contains(unshallow, hash) {
			continue
		}
		for _, parent := range commit.ParentHashes {
			if c.storage.HasEncodedObject(parent) != nil {
				out = append(out, candidate)
				break
			}
		}
	}
	c.metadata.Shallow = out
}

// findAncestor searches a commit among the ancestors of another. complete is false if the cached
// history ends before.
func (c *gitCache) findAncestor(ctx context.Context, from, ancestor string) (found, complete bool, err error) {
	c.objects.mutex.Lock()
	defer c.objects.mutex.Unlock()
	target := plumbing.NewHash(ancestor)
	seen := map[plumbing.Hash]bool{}
	next := []plumbing.Hash{plumbing.NewHash(from)}
	complete = true
	for len(next) > 0 {
		hash := next[0]
		next = next[1:]
		if hash == target {
			return true, true, nil
		}
		if seen[hash] {
			continue
		}
		seen[hash] = true
		if len(seen) > maxWalkedCommits || len(seen)%256 == 0 && ctx.Err() != nil {
			return false, false, ctx.Err()
		}
		commit, err := object.GetCommit(c.storage, hash)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			complete = false
			continue
		}
		if err != nil {
			return false, false, c.objects.recordDamage(err)
		}
		next = append(next, commit.ParentHashes...)
	}
	return false, complete, nil
}

// checkOnBranch checks that a named commit is on the branch that is named beside it.
func (r *gitRemote) checkOnBranch(ctx context.Context, cache *gitCache, head Head) error {
	ref := r.options.Ref
	if ref.Commit == "" || ref.Commit != head.Commit || ref.Branch == "" {
		return nil
	}
	r.mutex.Lock()
	known := cache.metadata.Branches[ref.Branch] == head.Commit
	r.mutex.Unlock()
	if known {
		return nil
	}
	have, err := r.wire.references(ctx)
	if err != nil {
		return connectionError(ctx, "ask "+r.displayURL()+" for its references", err)
	}
	r.capabilities.Store(have.Capabilities)
	tip, ok := have.References[branchPrefix+ref.Branch]
	if !ok {
		return newError(ReasonReferenceNotFound, "the repository has no branch %s", ref.Branch)
	}
	for _, depth := range []int{historyDepth, unlimitedDepth} {
		if !cache.hasObject(tip) || depth == unlimitedDepth {
			if err := r.requestPack(ctx, cache, []plumbing.Hash{tip}, depth); err != nil {
				return err
			}
		}
		found, complete, err := cache.findAncestor(ctx, tip.String(), head.Commit)
		if err != nil {
			return connectionError(ctx, "search branch "+ref.Branch, err)
		}
		if found {
			return nil
		}
		if complete {
			break
		}
	}
	return newError(ReasonReferenceNotFound, "commit %s is not on branch %s: name one that is, or leave the branch out", head.Commit, ref.Branch)
}

// detectForcePush records whether a branch moved on or was force-pushed.
func (r *gitRemote) detectForcePush(ctx context.Context, cache *gitCache, snapshot *Snapshot) error {
	if r.isTagFollowed() || snapshot.Name == "" || r.options.Ref.Commit != "" && r.options.Ref.Branch == "" {
		return nil
	}
	r.mutex.Lock()
	former := cache.metadata.Branches[snapshot.Name]
	r.mutex.Unlock()
	rewritten := false
	if former != "" && former != snapshot.Commit && r.options.Ref.Commit == "" {
		found, complete, err := cache.findAncestor(ctx, snapshot.Commit, former)
		if err == nil && !found && !complete && r.isHistoryTooLarge(cache) {
			found = true
		}
		if err == nil && !found && !complete {
			// The cached history ends too early. The second request is expensive and rare.
			switch wider := r.requestPack(ctx, cache, []plumbing.Hash{plumbing.NewHash(snapshot.Commit)}, searchDepth); {
			case wider == nil:
				found, _, err = cache.findAncestor(ctx, snapshot.Commit, former)
			case ReasonOf(wider) == ReasonTooLarge:
				found = true // the history is unavailable: do not report an uncertain force-push
			}
		}
		if err != nil {
			return connectionError(ctx, "search branch "+snapshot.Name, err)
		}
		rewritten = !found
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	notes := &cache.metadata
	if former != snapshot.Commit {
		delete(notes.Rewritten, former)
		delete(notes.Rewritten, snapshot.Commit)
	}
	if rewritten {
		notes.Rewritten = withEntry(notes.Rewritten, snapshot.Commit, former)
	}
	notes.Branches = withEntry(notes.Branches, snapshot.Name, snapshot.Commit)
	snapshot.Rewritten = notes.Rewritten[snapshot.Commit]
	return nil
}
