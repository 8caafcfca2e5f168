// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

const (
	defaultBranch = "main"
	branchPrefix  = "refs/heads/"
	tagPrefix     = "refs/tags/"
)

// headOf returns the head that a reference selects among a repository's references. The most
// specific part of the reference counts.
func headOf(ref landscapev1alpha1.Reference, have *packp.AdvRefs) (Head, error) {
	switch {
	case ref.SemVer != "":
		return versionHead(ref.SemVer, have)
	case ref.Tag != "":
		head, ok := tagHead(ref.Tag, have)
		if !ok {
			return Head{}, newError(ReasonReferenceNotFound, "the repository has no tag %s", ref.Tag)
		}
		return head, nil
	}
	branch := branchOf(ref)
	hash, ok := have.References[branchPrefix+branch]
	if !ok {
		return Head{}, newError(ReasonReferenceNotFound, "the repository has no branch %s: it was deleted, or has another name", branch)
	}
	return Head{Name: branch, Commit: hash.String()}, nil
}

func branchOf(ref landscapev1alpha1.Reference) string {
	if ref.Branch == "" {
		return defaultBranch
	}
	return ref.Branch
}

func tagHead(name string, have *packp.AdvRefs) (Head, bool) {
	hash, ok := have.References[tagPrefix+name]
	if !ok {
		return Head{}, false
	}
	if commit, annotated := have.Peeled[tagPrefix+name]; annotated {
		return Head{Name: name, Commit: commit.String(), Tag: hash.String()}, true
	}
	return Head{Name: name, Commit: hash.String()}, true
}

func versionHead(versions string, have *packp.AdvRefs) (Head, error) {
	var names []string
	for name := range have.References {
		if tag, ok := strings.CutPrefix(name, tagPrefix); ok {
			names = append(names, tag)
		}
	}
	name, ok := highestVersion(versions, names)
	if !ok {
		return Head{}, newError(ReasonReferenceNotFound, "the repository has no tag in the range %s", versions)
	}
	head, _ := tagHead(name, have)
	return head, nil
}

// highestVersion returns the name of the highest version in a range. Among two names of one version
// the first in order counts, for example 1.2.0 before v1.2.0.
func highestVersion(versions string, names []string) (string, bool) {
	constraint, err := semver.NewConstraint(versions)
	if err != nil {
		return "", false
	}
	var best *semver.Version
	var found string
	for _, name := range names {
		version, err := semver.StrictNewVersion(strings.TrimPrefix(name, "v"))
		if err != nil || !constraint.Check(version) {
			continue
		}
		if best == nil || version.GreaterThan(best) || version.Equal(best) && name < found {
			best, found = version, name
		}
	}
	return found, best != nil
}

// branchAndTagHeads returns all branches and tags.
func branchAndTagHeads(have *packp.AdvRefs) []plumbing.Hash {
	var out []plumbing.Hash
	for name, hash := range have.References {
		if strings.HasPrefix(name, branchPrefix) || strings.HasPrefix(name, tagPrefix) {
			out = append(out, hash)
		}
	}
	return out
}

// checkDeletedTag rejects the highest existing version if the range has a higher one that was seen
// or applied before and no longer exists.
func checkDeletedTag(options Options, found string, seen []string, there func(name string) bool) error {
	if applied, err := ParseRevision(options.AppliedRevision); err == nil {
		seen = append(seen, applied.Name)
	}
	former, ok := highestVersion(options.Ref.SemVer, append(seen, found))
	if !ok || there(former) {
		return nil
	}
	return newError(ReasonReferenceNotFound, "tag %s no longer exists, and %s, the highest in the range %s, is lower: push the tag again, or exclude it from the range",
		former, found, options.Ref.SemVer)
}
