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
	raw, err := cache.objects.content(plumbing.CommitObject, plumbing.NewHash(head.Commit))
	if err != nil {
		return nil, err
	}
	signer, err := r.verify(cache, head, raw)
	if err != nil {
		return nil, err
	}
	commit, err := cache.objects.commit(plumbing.NewHash(head.Commit))
	if err != nil {
		return nil, err
	}
	r.mutex.Lock()
	tree := r.checked[head.Commit]
	r.mutex.Unlock()
	if tree == nil {
		if tree, err = r.check(ctx, cache, commit); err != nil {
			return nil, err
		}
		r.mutex.Lock()
		if len(r.checked) >= maxChecked {
			clear(r.checked)
		}
		r.checked[head.Commit] = tree
		r.mutex.Unlock()
	}
	subject, _, _ := strings.Cut(strings.TrimSpace(commit.Message), "\n")
	author := commit.Author.Name
	if commit.Author.Email != "" {
		author = strings.TrimSpace(author + " <" + commit.Author.Email + ">")
	}
	return &Snapshot{Head: head, FS: tree, Author: printable(author, 200), Subject: printable(subject, 200), When: commit.Committer.When, Signer: signer}, nil
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
			return nil, ofField("verify.mode", "%s needs ref.tag or ref.semver: a branch and a commit have no signed tag", options.Verify.Mode)
		}
	default:
		return nil, ofField("verify.mode", "%q is not known: use HEAD, Tag or TagAndHEAD", printable(string(options.Verify.Mode), 40))
	}
	keys, err := signature.ReadKeys(options.Verify.Keys)
	if err != nil {
		return nil, failure(ReasonInvalid, "the Secret of verify: %s", err)
	}
	return keys, nil
}

// verifiesTag reports whether the signature of a tag is required.
func (r *gitRemote) verifiesTag() bool {
	return r.trusted != nil && (r.options.Verify.Mode == landscapev1alpha1.VerifyTag || r.options.Verify.Mode == landscapev1alpha1.VerifyTagAndHEAD)
}

// verify verifies the required signatures and returns the signer.
func (r *gitRemote) verify(cache *gitCache, head Head, commit []byte) (string, error) {
	if r.trusted == nil {
		return "", nil
	}
	now := r.options.Clock.Now()
	fail := func(what string, err error) (string, error) {
		return "", failure(ReasonVerificationFailed, "%s: %s; trusted are %s", what, err, strings.Join(r.trusted.Fingerprints(), ", "))
	}
	signer := ""
	if r.verifiesTag() {
		if head.Tag == "" && head.Name != "" {
			return fail(fmt.Sprintf("tag %s of commit %s", head.Name, head.Commit), fmt.Errorf("it is no annotated tag, and only those are signed: push one that git tag -s makes"))
		}
		if head.Tag == "" {
			return fail("commit "+head.Commit, fmt.Errorf("no annotated tag of it is known, and only those are signed"))
		}
		tag, err := cache.objects.content(plumbing.TagObject, plumbing.NewHash(head.Tag))
		if err != nil {
			return "", err
		}
		name := head.Name
		if name == "" {
			r.mutex.Lock()
			name = cache.notes.TagObjects[head.Commit].Name
			r.mutex.Unlock()
		}
		if signer, err = r.trusted.VerifyTag(tag, name, head.Commit, now); err != nil {
			return fail(fmt.Sprintf("tag %s of commit %s", name, head.Commit), err)
		}
	}
	if r.options.Verify.Mode != landscapev1alpha1.VerifyTag {
		of, err := r.trusted.VerifyCommit(commit, now)
		if err != nil {
			return fail("commit "+head.Commit, err)
		}
		signer = of
	}
	return printable(signer, 200), nil
}

// check walks all folders of a commit: every object must exist, no name may leave the tree, and
// depth and number of files are bounded.
func (r *gitRemote) check(ctx context.Context, cache *gitCache, commit *object.Commit) (*TreeFS, error) {
	tree := newTreeFS(cache.objects, commit.TreeHash, commit.Committer.When)
	tree.largest = r.options.Limits.File
	walk := checkWalk{ctx: ctx, cache: cache, tree: tree, limits: r.options.Limits, commit: commit.Hash.String(), links: map[string]plumbing.Hash{}}
	if err := walk.folder(".", 0); err != nil {
		return nil, err
	}
	if len(walk.links) > 0 && r.options.Submodules {
		modules, err := r.submodules(ctx, tree, walk.links)
		if err != nil {
			return nil, err
		}
		tree.modules = modules
	}
	return tree, nil
}

type checkWalk struct {
	ctx    context.Context
	cache  *gitCache
	tree   *TreeFS
	limits Limits
	commit string
	files  int
	// links are the commits of submodules by path.
	links map[string]plumbing.Hash
}

func (w *checkWalk) folder(name string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return unreachable(w.ctx, "look through commit "+w.commit, err)
	}
	if depth > maxFolderDepth {
		return failure(ReasonTooLarge, "commit %s has folders within folders, more than %d deep", w.commit, maxFolderDepth)
	}
	folder, err := w.tree.folder(name)
	if err != nil {
		return fmt.Errorf("read folder %s of commit %s: %w", name, w.commit, err)
	}
	former := ""
	for _, entry := range folder.entries {
		if !validEntry(entry.Name) || entry.Name == former {
			return failure(ReasonInvalid, "commit %s has a file in folder %s with the name %q, which Git does not allow", w.commit, name, printable(entry.Name, 80))
		}
		former = entry.Name
		if w.files++; w.files > w.limits.Files {
			return failure(ReasonTooLarge, "commit %s has more than %d files", w.commit, w.limits.Files)
		}
		inner := entry.Name
		if name != "." {
			inner = name + "/" + entry.Name
		}
		switch entry.Mode {
		case filemode.Submodule:
			w.links[inner] = entry.Hash
		case filemode.Dir:
			if err := w.folder(inner, depth+1); err != nil {
				return err
			}
		default:
			if !w.cache.has(entry.Hash) {
				return w.cache.objects.failed(fmt.Errorf("file %s of commit %s: %w", inner, w.commit, plumbing.ErrObjectNotFound))
			}
		}
	}
	return nil
}

// validEntry checks a file name against Git's rules.
func validEntry(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.EqualFold(name, ".git") && !strings.ContainsAny(name, "/\x00")
}
