// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/signature"
)

// snapshot returns a cached revision after verifying its signatures and completeness.
func (r *gitRemote) snapshot(ctx context.Context, cache *gitCache, head Head) (*Snapshot, error) {
	raw, err := cache.objects.readContent(plumbing.CommitObject, plumbing.NewHash(head.Commit))
	if err != nil {
		return nil, err
	}
	signer, err := r.verifySignatures(cache, head, raw)
	if err != nil {
		return nil, err
	}
	commit, err := cache.objects.commit(plumbing.NewHash(head.Commit))
	if err != nil {
		return nil, err
	}
	r.mutex.Lock()
	tree := r.checkedTrees[head.Commit]
	r.mutex.Unlock()
	if tree == nil {
		if tree, err = r.checkTree(ctx, cache, commit); err != nil {
			return nil, err
		}
		r.mutex.Lock()
		if len(r.checkedTrees) >= maxCachedRevisions {
			clear(r.checkedTrees)
		}
		r.checkedTrees[head.Commit] = tree
		r.mutex.Unlock()
	}
	subject, _, _ := strings.Cut(strings.TrimSpace(commit.Message), "\n")
	author := commit.Author.Name
	if commit.Author.Email != "" {
		author = strings.TrimSpace(author + " <" + commit.Author.Email + ">")
	}
	return &Snapshot{Head: head, FS: tree, Author: boundedLine(author, 200), Subject: boundedLine(subject, 200), Time: commit.Committer.When, Signer: signer}, nil
}

// trustedKeys parses the keys for verification.
func trustedKeys(options Options) (*signature.Keys, error) {
	if options.Verify == nil {
		return nil, nil
	}
	switch options.Verify.Mode {
	case "", landscapev1alpha1.VerifyHEAD:
	case landscapev1alpha1.VerifyTag, landscapev1alpha1.VerifyTagAndHEAD:
		if options.Ref.Tag == "" && options.Ref.SemVer == "" || options.Ref.Commit != "" {
			return nil, newFieldError("verify.mode", "%s needs ref.tag or ref.semver: a branch and a commit have no signed tag", options.Verify.Mode)
		}
	default:
		return nil, newFieldError("verify.mode", "%q is not known: use HEAD, Tag or TagAndHEAD", boundedLine(string(options.Verify.Mode), 40))
	}
	keys, err := signature.ReadKeys(options.Verify.Keys)
	if err != nil {
		return nil, newError(ReasonInvalid, "the Secret of verify: %s", err)
	}
	return keys, nil
}

// isTagVerified reports whether the signature of a tag is required.
func (r *gitRemote) isTagVerified() bool {
	return r.keys != nil && (r.options.Verify.Mode == landscapev1alpha1.VerifyTag || r.options.Verify.Mode == landscapev1alpha1.VerifyTagAndHEAD)
}

// verifySignatures verifies the required signatures and returns the signer.
func (r *gitRemote) verifySignatures(cache *gitCache, head Head, commit []byte) (string, error) {
	if r.keys == nil {
		return "", nil
	}
	now := r.options.Clock.Now()
	fail := func(what string, err error) (string, error) {
		return "", newError(ReasonVerificationFailed, "%s: %s; trusted are %s", what, err, strings.Join(r.keys.Fingerprints(), ", "))
	}
	signer := ""
	if r.isTagVerified() {
		if head.Tag == "" && head.Name != "" {
			return fail(fmt.Sprintf("tag %s of commit %s", head.Name, head.Commit), fmt.Errorf("it is not an annotated tag, and only annotated tags are signed: push one that git tag -s makes"))
		}
		if head.Tag == "" {
			return fail("commit "+head.Commit, fmt.Errorf("it has no known annotated tag, and only annotated tags are signed"))
		}
		tag, err := cache.objects.readContent(plumbing.TagObject, plumbing.NewHash(head.Tag))
		if err != nil {
			return "", err
		}
		name := head.Name
		if name == "" {
			r.mutex.Lock()
			name = cache.metadata.TagObjects[head.Commit].Name
			r.mutex.Unlock()
		}
		if signer, err = r.keys.VerifyTag(tag, name, head.Commit, now); err != nil {
			return fail(fmt.Sprintf("tag %s of commit %s", name, head.Commit), err)
		}
	}
	if r.options.Verify.Mode != landscapev1alpha1.VerifyTag {
		of, err := r.keys.VerifyCommit(commit, now)
		if err != nil {
			return fail("commit "+head.Commit, err)
		}
		signer = of
	}
	return boundedLine(signer, 200), nil
}

// checkTree walks all folders of a commit: every object must exist, no name may leave the tree, and
// depth and number of files are bounded.
func (r *gitRemote) checkTree(ctx context.Context, cache *gitCache, commit *object.Commit) (*TreeFS, error) {
	tree := newTreeFS(cache.objects, commit.TreeHash, commit.Committer.When)
	tree.maxFileSize = r.options.Limits.File
	walk := treeCheck{ctx: ctx, cache: cache, tree: tree, limits: r.options.Limits, commit: commit.Hash.String(), submoduleCommits: map[string]plumbing.Hash{}}
	if err := walk.checkFolder(".", 0); err != nil {
		return nil, err
	}
	if len(walk.submoduleCommits) > 0 && r.options.Submodules {
		modules, err := r.fetchSubmodules(ctx, tree, walk.submoduleCommits)
		if err != nil {
			return nil, err
		}
		tree.submodules = modules
	}
	return tree, nil
}

type treeCheck struct {
	ctx    context.Context
	cache  *gitCache
	tree   *TreeFS
	limits Limits
	commit string
	files  int
	// submoduleCommits are the commits of submodules by path.
	submoduleCommits map[string]plumbing.Hash
}

func (w *treeCheck) checkFolder(name string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return connectionError(w.ctx, "read commit "+w.commit, err)
	}
	if depth > maxFolderDepth {
		return newError(ReasonTooLarge, "commit %s has folders within folders, more than %d deep", w.commit, maxFolderDepth)
	}
	folder, err := w.tree.folder(name)
	if err != nil {
		return fmt.Errorf("read folder %s of commit %s: %w", name, w.commit, err)
	}
	former := ""
	for _, entry := range folder.entries {
		if !isValidEntryName(entry.Name) || entry.Name == former {
			return newError(ReasonInvalid, "commit %s has a file in folder %s with the name %q, which Git does not allow", w.commit, name, boundedLine(entry.Name, 80))
		}
		former = entry.Name
		if w.files++; w.files > w.limits.Files {
			return newError(ReasonTooLarge, "commit %s has more than %d files", w.commit, w.limits.Files)
		}
		inner := entry.Name
		if name != "." {
			inner = name + "/" + entry.Name
		}
		switch entry.Mode {
		case filemode.Submodule:
			w.submoduleCommits[inner] = entry.Hash
		case filemode.Dir:
			if err := w.checkFolder(inner, depth+1); err != nil {
				return err
			}
		default:
			if !w.cache.hasObject(entry.Hash) {
				return w.cache.objects.recordDamage(fmt.Errorf("file %s of commit %s: %w", inner, w.commit, plumbing.ErrObjectNotFound))
			}
		}
	}
	return nil
}

// isValidEntryName checks a file name against Git's rules.
func isValidEntryName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.EqualFold(name, ".git") && !strings.ContainsAny(name, "/\x00")
}
