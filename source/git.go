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
	trusted  *signature.Keys
	wire     wire
	// depth of this repository among nested submodules.
	depth int

	// capabilities of the server, from its last answer.
	capabilities atomic.Pointer[capability.List]
	// turn permits one transfer at a time.
	turn chan struct{}

	// mutex guards the fields below, and the notes of the cache.
	mutex     sync.Mutex
	cache     *gitCache
	temporary bool
	// checked are the trees of complete commits, by commit.
	checked map[string]*TreeFS
	modules map[string]*gitRemote
	// found counts the submodules of a repository, including nested ones.
	found *atomic.Int32
}

// maxChecked bounds the revisions whose folders stay in memory.
const maxChecked = 4

func newGitRemote(options Options, location *url.URL, trusted *signature.Keys) (*gitRemote, error) {
	connection, err := newWire(options, location)
	if err != nil {
		return nil, err
	}
	return &gitRemote{options: options, location: location, trusted: trusted, wire: connection, turn: make(chan struct{}, 1),
		checked: map[string]*TreeFS{}, modules: map[string]*gitRemote{}, found: &atomic.Int32{}}, nil
}

func (r *gitRemote) where() string { return r.location.Redacted() }

// Resolve implements Remote. A named commit needs no request.
func (r *gitRemote) Resolve(ctx context.Context) (_ Head, err error) {
	defer r.caught(&err)
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
		return Head{}, unreachable(ctx, "ask "+r.where()+" for its references", err)
	}
	r.capabilities.Store(have.Capabilities)
	head, err := headOf(r.options.Ref, have)
	if err != nil {
		return Head{}, err
	}
	cache, err := r.open()
	if err != nil {
		return Head{}, err
	}
	if err := r.checkGone(cache, have, head); err != nil {
		return Head{}, err
	}
	return head, r.checkTag(cache, head)
}

// checkGone refuses to roll back to a lower version because the tag of a higher one was deleted:
// nobody has asked for that.
func (r *gitRemote) checkGone(cache *gitCache, have *packp.AdvRefs, head Head) error {
	ref := r.options.Ref
	if ref.SemVer == "" {
		return nil
	}
	var seen []string
	r.mutex.Lock()
	for name := range cache.notes.Tags {
		seen = append(seen, name)
	}
	r.mutex.Unlock()
	return gone(r.options, head.Name, seen, func(name string) bool { _, there := have.References[tagPrefix+name]; return there })
}

// byTag reports whether heads are tags, which do not move.
func (r *gitRemote) byTag() bool {
	ref := r.options.Ref
	return ref.Commit == "" && (ref.Tag != "" || ref.SemVer != "")
}

// checkTag rejects a tag that points to another commit than before.
func (r *gitRemote) checkTag(cache *gitCache, head Head) error {
	if !r.byTag() {
		return nil
	}
	r.mutex.Lock()
	former := cache.notes.Tags[head.Name]
	r.mutex.Unlock()
	if former == "" {
		if applied, err := ParseRevision(r.options.Applied); err == nil && applied.Name == head.Name {
			former = applied.Commit
		}
	}
	if former == "" || former == head.Commit {
		return nil
	}
	return failure(ReasonTagRewritten, "tag %s named commit %s and names %s now: tags do not move; make a new tag, or accept it by ref.commit: %s beside the tag for one sync",
		head.Name, former, head.Commit, head.Commit)
}

// Fetch implements Remote.
func (r *gitRemote) Fetch(ctx context.Context, head Head) (_ *Snapshot, err error) {
	defer r.caught(&err)
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	if !isCommit(head.Commit) {
		return nil, failure(ReasonInvalid, "%q is no commit", printable(head.Commit, 80))
	}
	if err := r.take(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	cache, err := r.open()
	if err != nil {
		return nil, err
	}
	if err := r.checkTag(cache, head); err != nil {
		return nil, err
	}
	snapshot, err := r.bring(ctx, cache, head)
	if ReasonOf(err) == ReasonVerificationFailed {
		if newer, ok := r.tagAnew(ctx, head); ok {
			snapshot, err = r.bring(ctx, cache, newer)
		}
	}
	if err != nil {
		return nil, err
	}
	if err := r.follow(ctx, cache, snapshot); err != nil {
		return nil, err
	}
	return snapshot, r.note(cache, snapshot)
}

// tagAnew resolves a tag again if the verification of its commit failed. The user may have replaced
// an unsigned tag by a signed one of the same commit. The head may be older; it differs only in the
// tag object.
func (r *gitRemote) tagAnew(ctx context.Context, head Head) (Head, bool) {
	if !r.byTag() || !r.verifiesTag() || r.options.Offline {
		return Head{}, false
	}
	newer, err := r.resolve(ctx)
	// The next poll handles a tag of another commit. An error here says less than the failed
	// verification.
	return newer, err == nil && newer.Commit == head.Commit && newer != head
}

// At implements Remote.
func (r *gitRemote) At(ctx context.Context, commit string) (_ *Snapshot, err error) {
	defer r.caught(&err)
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	if !isCommit(commit) {
		return nil, failure(ReasonInvalid, "%q is no commit: 40 hexadecimal digits are needed", printable(commit, 80))
	}
	cache, err := r.open()
	if err != nil {
		return nil, err
	}
	head := Head{Commit: commit}
	r.mutex.Lock()
	if tag, ok := cache.notes.TagObjects[commit]; ok {
		head.Tag = tag.Object
	}
	ready := r.checked[commit] != nil
	r.mutex.Unlock()
	if ready && !cache.suspect.Load() {
		// A complete revision does not wait for another transfer.
		return r.snapshot(ctx, cache, head)
	}
	if err := r.take(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	snapshot, err := r.bring(ctx, cache, head)
	tagged := false
	if head.Tag == "" && ReasonOf(err) == ReasonVerificationFailed {
		if head, tagged = r.tagOf(ctx, commit); tagged {
			snapshot, err = r.bring(ctx, cache, head)
		}
	}
	if err != nil {
		return nil, err
	}
	r.mutex.Lock()
	if tagged {
		cache.notes.TagObjects = remember(cache.notes.TagObjects, commit, tagNote{Name: head.Name, Object: head.Tag})
	}
	cache.notes.looked(commit)
	err = cache.saveNotes()
	r.mutex.Unlock()
	return snapshot, err
}

// tagOf asks for the tag of an earlier commit, which a lost cache does not know.
func (r *gitRemote) tagOf(ctx context.Context, commit string) (Head, bool) {
	if !r.byTag() || !r.verifiesTag() || r.options.Offline {
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
		name, _ = highest(versions, names)
	}
	head, ok := tagHead(name, have)
	return head, ok && head.Commit == commit && head.Tag != ""
}

// caught turns a panic of go-git about damaged objects into an error, so that the cache is
// recreated. It must be deferred directly.
func (r *gitRemote) caught(err *error) {
	p := recover()
	if p == nil {
		return
	}
	cause := panics.Safe(func() error { panic(p) })()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.cache == nil {
		*err = &Error{Reason: ReasonDamaged, Message: "what was read of " + r.where() + " is damaged", Err: plain(cause)}
		return
	}
	*err = r.cache.objects.failed(cause)
}

// bring returns a revision, and transfers missing objects. It recreates an incomplete cache once.
func (r *gitRemote) bring(ctx context.Context, cache *gitCache, head Head) (*Snapshot, error) {
	fresh := false
	if cache.suspect.Load() {
		if err := r.restart(cache); err != nil {
			return nil, err
		}
		fresh = true
	}
	for {
		snapshot, err := r.attempt(ctx, cache, head)
		if err == nil || !cache.suspect.Load() {
			return snapshot, err
		}
		if fresh {
			return nil, &Error{Reason: ReasonUnreachable, Message: r.where() + ": the server sent an incomplete commit " + head.Commit, Err: plain(err)}
		}
		if err := r.restart(cache); err != nil {
			return nil, err
		}
		fresh = true
	}
}

// attempt uses the cache in its current state.
func (r *gitRemote) attempt(ctx context.Context, cache *gitCache, head Head) (snapshot *Snapshot, err error) {
	defer r.caught(&err)
	if r.lacks(cache, head) {
		if err := r.transfer(ctx, cache, head, historyDepth); err != nil {
			return nil, err
		}
	}
	if err := r.onBranch(ctx, cache, head); err != nil {
		return nil, err
	}
	return r.snapshot(ctx, cache, head)
}

func (r *gitRemote) restart(cache *gitCache) error {
	if r.options.Offline {
		return notKept(r.where())
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	clear(r.checked)
	return cache.reset()
}

func (r *gitRemote) lacks(cache *gitCache, head Head) bool {
	return !cache.has(plumbing.NewHash(head.Commit)) || head.Tag != "" && !cache.has(plumbing.NewHash(head.Tag))
}

// note records the fetched revision.
func (r *gitRemote) note(cache *gitCache, snapshot *Snapshot) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	notes := &cache.notes
	ref := r.options.Ref
	switch {
	case r.byTag():
		notes.Tags = remember(notes.Tags, snapshot.Name, snapshot.Commit)
		if snapshot.Tag != "" {
			notes.TagObjects = remember(notes.TagObjects, snapshot.Commit, tagNote{Name: snapshot.Name, Object: snapshot.Tag})
		}
	case ref.Commit != "" && ref.Branch == "" && ref.Tag != "":
		// A user named the commit beside the tag: from now on the tag means this commit.
		notes.Tags = remember(notes.Tags, ref.Tag, snapshot.Commit)
	}
	notes.looked(snapshot.Commit)
	if err := cache.saveNotes(); err != nil {
		return err
	}
	return nil
}

// take waits for the turn of this transfer.
func (r *gitRemote) take(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return unreachable(ctx, "wait for another fetch of "+r.where(), ctx.Err())
	}
}

func (r *gitRemote) release() { <-r.turn }

// open opens the cache at the first use.
func (r *gitRemote) open() (*gitCache, error) {
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
	if r.options.Offline && !holds(r.options.Dir, r.where()) {
		return nil, notKept(r.where())
	}
	cache, err := openGitCache(r.options.Dir, r.where())
	if err != nil {
		return nil, &Error{Reason: ReasonUnreachable, Message: "open the cache of " + r.where(), Err: err}
	}
	r.cache = cache
	return cache, nil
}

// Close implements Remote. It waits for a running transfer.
func (r *gitRemote) Close() error {
	r.turn <- struct{}{}
	defer r.release()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	err := r.wire.close()
	for _, module := range r.modules {
		_ = module.Close()
	}
	if r.cache != nil {
		r.cache.objects.mutex.Lock()
		_ = r.cache.storage.Close()
		r.cache.objects.mutex.Unlock()
		r.cache = nil
		clear(r.checked)
	}
	if r.temporary {
		err = os.RemoveAll(r.options.Dir)
		r.options.Dir, r.temporary = "", false
	}
	return err
}
