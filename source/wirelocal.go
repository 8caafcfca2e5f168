// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/pergola-dev/pergola/internal/panics"
)

// localWire reads a repository on the same machine, without the git command.
type localWire struct{ path string }

func newLocalWire(location *url.URL) *localWire { return &localWire{path: location.Path} }

func (w *localWire) open() (*gitStore, error) {
	files, found, err := findGitDir(w.path)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, newError(ReasonRepositoryNotFound, "%s is not a Git repository", w.path)
	}
	return openStore(files)
}

func (w *localWire) references(context.Context) (*packp.AdvRefs, error) {
	repo, err := w.open()
	if err != nil {
		return nil, err
	}
	out := packp.NewAdvRefs()
	for _, name := range []capability.Capability{capability.Shallow, capability.OFSDelta, capability.AllowReachableSHA1InWant} {
		if err := out.Capabilities.Add(name); err != nil {
			return nil, err
		}
	}
	if repo.usesReftable {
		return nil, newError(ReasonInvalid, "%s stores its references in the format reftable, which is not supported: run `git refs migrate --ref-format=files` in it", w.path)
	}
	refs, err := repo.references.IterReferences()
	if err != nil {
		return nil, err
	}
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Type() != plumbing.HashReference {
			return nil
		}
		out.References[ref.Name().String()] = ref.Hash()
		if tag, err := object.GetTag(repo.objectStores, ref.Hash()); err == nil {
			if commit, err := tag.Commit(); err == nil {
				out.Peeled[ref.Name().String()] = commit.Hash
			}
		}
		return nil
	})
	if err == nil && len(out.References) == 0 {
		return nil, newError(ReasonReferenceNotFound, "the repository is empty: push a commit")
	}
	return out, err
}

func (w *localWire) pack(ctx context.Context, request *packp.UploadPackRequest) (*pack, error) {
	repo, err := w.open()
	if err != nil {
		return nil, err
	}
	walk := localWalk{ctx: ctx, objects: repo.objectStores, seen: map[plumbing.Hash]bool{}, out: &pack{}}
	for _, have := range request.Haves {
		if commit, err := object.GetCommit(repo.objectStores, have); err == nil {
			walk.seen[have] = true
			if err := walk.addTree(commit.TreeHash); err != nil {
				return nil, fmt.Errorf("read the existing objects: %w", err)
			}
		}
	}
	walk.hashes = nil
	depth := 0
	if commits, ok := request.Depth.(packp.DepthCommits); ok {
		depth = int(commits)
	}
	for _, want := range request.Wants {
		if err := walk.addCommits(want, depth); err != nil {
			return nil, err
		}
	}
	reader, writer := io.Pipe()
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = reader.CloseWithError(ctx.Err()) })
	go func() {
		defer close(done)
		_ = writer.CloseWithError(panics.AsError(func() error {
			_, err := packfile.NewEncoder(writer, repo.objectStores, false).Encode(walk.hashes, 0)
			return err
		})())
	}()
	walk.out.ReadCloser = readCloser{reader, func() error {
		stop()
		_ = reader.Close()
		<-done
		return nil
	}}
	return walk.out, nil
}

func (w *localWire) close() error { return nil }

// localWalk collects the objects of commits that the other side lacks.
type localWalk struct {
	ctx     context.Context
	objects storer.EncodedObjectStorer
	seen    map[plumbing.Hash]bool
	hashes  []plumbing.Hash
	out     *pack
}

func (l *localWalk) add(hash plumbing.Hash) bool {
	if l.seen[hash] {
		return false
	}
	l.seen[hash] = true
	l.hashes = append(l.hashes, hash)
	return true
}

// addCommits adds a tag or a commit, and as many generations as requested (0: all).
func (l *localWalk) addCommits(hash plumbing.Hash, depth int) error {
	if tag, err := object.GetTag(l.objects, hash); err == nil {
		l.add(hash)
		return l.addCommits(tag.Target, depth)
	}
	generation := []plumbing.Hash{hash}
	for level := 1; len(generation) > 0; level++ {
		var next []plumbing.Hash
		for _, hash := range generation {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			if l.seen[hash] {
				continue
			}
			commit, err := object.GetCommit(l.objects, hash)
			if errors.Is(err, plumbing.ErrObjectNotFound) && level > 1 {
				// The repository itself is shallow here.
				continue
			} else if errors.Is(err, plumbing.ErrObjectNotFound) {
				return refusalError("not our ref " + hash.String())
			} else if err != nil {
				return err
			}
			l.add(hash)
			if err := l.addTree(commit.TreeHash); err != nil {
				return err
			}
			if depth > 0 && level >= depth && len(commit.ParentHashes) > 0 {
				l.out.shallow = append(l.out.shallow, hash)
				continue
			}
			next = append(next, commit.ParentHashes...)
		}
		generation = next
	}
	return nil
}

func (l *localWalk) addTree(hash plumbing.Hash) error {
	if !l.add(hash) {
		return nil
	}
	tree, err := object.GetTree(l.objects, hash)
	if err != nil {
		return err
	}
	for _, entry := range tree.Entries {
		switch entry.Mode {
		case filemode.Submodule:
		case filemode.Dir:
			if err := l.addTree(entry.Hash); err != nil {
				return err
			}
		default:
			l.add(entry.Hash)
		}
	}
	return nil
}
