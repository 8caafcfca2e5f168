// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// resolve returns the commit of a revision, like `git rev-parse` (gitrevisions(7)). It runs git. If
// git is not installed, or does not read the repository, resolve supports only revisions that need
// nothing but objects. It also follows a revision that git rejects, to find the wrong part.
func (r *Repository) resolve(rev string) (plumbing.Hash, error) {
	hash, err := r.resolveHash(rev)
	if err != nil {
		return hash, fmt.Errorf("revision %q: %w", boundedLine(rev, 200), err)
	}
	return hash, nil
}

func (r *Repository) resolveHash(rev string) (plumbing.Hash, error) {
	if rev == "" || strings.HasPrefix(rev, "-") || strings.ContainsAny(rev, "\x00\n") {
		return plumbing.ZeroHash, fmt.Errorf("it does not have the form of a revision: give a branch, a tag or a commit")
	}
	hash, asked := r.program.resolveRevision(rev)
	foreign, _ := errors.AsType[*gitUnusableError](asked)
	unknown, _ := errors.AsType[*unknownRevisionError](asked)
	switch {
	case asked == nil:
	case foreign != nil && foreign.foreignOwner, foreign == nil && unknown == nil:
		return plumbing.ZeroHash, asked
	default:
		var err error
		if hash, err = r.resolveSteps(rev); err != nil {
			return plumbing.ZeroHash, err
		}
		if unknown != nil {
			return plumbing.ZeroHash, fmt.Errorf("git does not understand it: %s", unknown.explanationOr("give a branch, a tag or a commit"))
		}
	}
	return r.peelToCommit(rev, hash)
}

// explanationOr returns git's explanation, or another text if it is empty.
func (e *unknownRevisionError) explanationOr(text string) string {
	if e.explanation != "" {
		return e.explanation
	}
	return text
}

// peelToCommit follows a tag to its commit.
func (r *Repository) peelToCommit(rev string, hash plumbing.Hash) (plumbing.Hash, error) {
	found, err := r.readObject(hash)
	if base, _ := splitRevision(rev); errors.Is(err, plumbing.ErrObjectNotFound) && isCommit(strings.ToLower(base)) {
		return hash, fmt.Errorf("not found in %s: give a branch, a tag or a commit%s", r.Root, r.shallowHint())
	}
	if err != nil {
		return hash, r.objects.recordDamage(err)
	}
	switch found := found.(type) {
	case *object.Commit:
		return hash, nil
	case *object.Tag:
		return r.peelToCommit("", found.Target)
	default:
		if err := checkRevisionForm(rev); err != nil {
			return hash, err
		}
		return hash, fmt.Errorf("it is the name of a %s, not of a commit: give a branch, a tag or a commit", found.Type())
	}
}

func (r *Repository) readObject(hash plumbing.Hash) (found object.Object, err error) {
	r.objects.mutex.Lock()
	defer r.objects.mutex.Unlock()
	return object.GetObject(r.objects.storer, hash)
}

// splitRevision splits a revision into its base name and its steps: ~2, ^1, ^{commit}, @{1}, :path,
// ..other.
func splitRevision(rev string) (base string, steps []string) {
	if strings.HasPrefix(rev, ":/") {
		return rev, nil
	}
	at := 0
	for at < len(rev) && stepLength(rev[at:]) == 0 {
		at++
	}
	base, rev = rev[:at], rev[at:]
	for rev != "" {
		length := stepLength(rev)
		if length == 0 {
			length = len(rev)
		}
		steps, rev = append(steps, rev[:length]), rev[length:]
	}
	return base, steps
}

var stepPattern = regexp.MustCompile(`^(~[0-9]*|\^[0-9]+|\^@|\^!|\^-[0-9]*|:.*|\.\..*)`)

// stepLength returns the length of the step at the beginning of a text, or 0 if there is none.
func stepLength(text string) int {
	if strings.HasPrefix(text, "@{") || strings.HasPrefix(text, "^{") {
		depth := 0
		for i, c := range text {
			switch c {
			case '{':
				depth++
			case '}':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return len(text)
	}
	if length := len(stepPattern.FindString(text)); length > 0 || !strings.HasPrefix(text, "^") {
		return length
	}
	return 1
}

// resolveSteps follows the steps of a revision. The error names the first invalid part.
func (r *Repository) resolveSteps(rev string) (plumbing.Hash, error) {
	if err := checkRevisionForm(rev); err != nil {
		return plumbing.ZeroHash, err
	}
	base, steps := splitRevision(rev)
	var at plumbing.Hash
	var err error
	if base != "" {
		if at, err = r.resolveBaseName(rev, base); err != nil {
			return at, err
		}
	}
	text := base
	for _, step := range steps {
		if at, err = r.resolveStep(text, step, at); err != nil {
			return at, err
		}
		text += step
	}
	return at, nil
}

// checkRevisionForm rejects forms that do not name one commit.
func checkRevisionForm(rev string) error {
	text, steps := splitRevision(rev)
	for i, step := range steps {
		shown := boundedLine(step, 200)
		switch {
		case strings.HasPrefix(step, ".."):
			return fmt.Errorf("%q makes it a range of commits: give its two ends as two revisions", shown)
		case step == "^!" || strings.HasPrefix(step, "^-"):
			return fmt.Errorf("%q makes it a range of commits: give one commit", shown)
		case step == "^@":
			return fmt.Errorf("%q names all parents of %s, not one commit: %s^1 is the first", shown, text, text)
		case strings.HasPrefix(step, ":") && text == "":
			return fmt.Errorf("%q names a file of the index, not a commit: commit it, and give the commit", shown)
		case strings.HasPrefix(step, ":"):
			return fmt.Errorf("%q names a file or folder of a commit, not a commit: give the commit alone (%s); the folder is the argument", shown, text)
		case step == "^" && text == "" && len(steps) > 1:
			return fmt.Errorf("%q leaves the commits of a revision out and names none: give %s alone", shown, boundedLine(rev[1:], 200))
		case i == 0 && text == "" && !strings.HasPrefix(step, "@{"):
			return fmt.Errorf("there is no name before %q: write HEAD%s for the last commit", shown, boundedLine(rev, 200))
		}
		text += step
	}
	return nil
}

// resolveBaseName resolves the base name of a revision.
func (r *Repository) resolveBaseName(rev, base string) (plumbing.Hash, error) {
	hash, err := r.program.resolveRevision(base)
	if err == nil {
		return hash, nil
	}
	unknown, _ := errors.AsType[*unknownRevisionError](err)
	unasked, _ := errors.AsType[*gitUnusableError](err)
	text, isText := strings.CutPrefix(base, ":/")
	switch {
	case unknown == nil && unasked == nil:
		return hash, err
	case isText && unasked != nil:
		return hash, fmt.Errorf("only git searches messages for %q, and %s: give a branch, a tag or a commit", boundedLine(text, 200), unasked.cause)
	case isText:
		return hash, fmt.Errorf("no commit has a message that matches %q: %s", boundedLine(text, 200), unknown.explanationOr("give a branch, a tag or a commit"))
	}
	hash, err = r.resolveWithoutGit(base)
	switch {
	case err == nil && unknown != nil:
		return hash, fmt.Errorf("git does not understand %q: %s", base, unknown.explanationOr("give a branch, a tag or a commit"))
	case errors.Is(err, plumbing.ErrReferenceNotFound):
		what := ""
		if base != rev {
			what = fmt.Sprintf("%q is ", base)
		}
		if branch := r.unbornBranch(); branch != "" {
			return hash, fmt.Errorf("%snot found in %s: %s has no commit yet; commit the landscape first (git add, git commit)", what, r.Root, branch)
		}
		if unasked != nil && r.usesReftable {
			return hash, fmt.Errorf("%snot found in %s: only git reads references of the format reftable, and %s", what, r.Root, unasked.cause)
		}
		return hash, fmt.Errorf("%snot found in %s: give a branch, a tag or a commit%s", what, r.Root, r.shallowHint())
	}
	return hash, err
}

var (
	describedPattern   = regexp.MustCompile(`^.+-g([0-9a-fA-F]{4,40})$`)
	abbreviatedPattern = regexp.MustCompile(`^[0-9a-fA-F]{4,40}$`)
	// fullReferencePattern matches references that are neither a branch, tag nor remote, such as
	// HEAD and MERGE_HEAD.
	fullReferencePattern = regexp.MustCompile(`^([A-Z_]+|refs/.*)$`)
)

// resolveWithoutGit resolves a name without git: a full commit id, a reference, or an abbreviated
// commit id. Otherwise the error is plumbing.ErrReferenceNotFound.
func (r *Repository) resolveWithoutGit(name string) (plumbing.Hash, error) {
	if name == "@" {
		name = "HEAD"
	}
	digits := strings.ToLower(name)
	if isCommit(digits) {
		return plumbing.NewHash(digits), nil
	}
	references, err := r.referencesOf(name)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if described := describedPattern.FindStringSubmatch(name); described != nil && len(references) == 0 {
		digits = strings.ToLower(described[1])
	}
	var objects []plumbing.Hash
	if abbreviatedPattern.MatchString(digits) {
		if objects, err = r.hashesWithPrefix(digits); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	var meanings []string
	for _, reference := range references {
		meanings = append(meanings, reference.Name().String())
	}
	for _, hash := range objects {
		meanings = append(meanings, hash.String())
	}
	switch {
	case len(meanings) > 1:
		shown := strings.Join(meanings[:min(len(meanings), maxListedMatches)], ", ")
		if len(meanings) > maxListedMatches {
			shown += ", …"
		}
		return plumbing.ZeroHash, fmt.Errorf("%q is ambiguous: write out one of %s", name, shown)
	case len(references) > 0:
		return references[0].Hash(), nil
	case len(objects) > 0:
		return objects[0], nil
	}
	return plumbing.ZeroHash, plumbing.ErrReferenceNotFound
}

// maxListedMatches is how many meanings of an ambiguous name an error lists.
const maxListedMatches = 6

func (r *Repository) hashesWithPrefix(digits string) (found []plumbing.Hash, err error) {
	err = r.objects.withStore(func() (err error) {
		found, err = r.objectStores.hashesWithPrefix(digits)
		return err
	})
	return found, err
}

// referencesOf returns the references that a name may mean, in git's order of precedence.
func (r *Repository) referencesOf(name string) ([]*plumbing.Reference, error) {
	var out []*plumbing.Reference
	for _, rule := range plumbing.RefRevParseRules {
		full := fmt.Sprintf(rule, name)
		if !fullReferencePattern.MatchString(full) {
			continue
		}
		found, err := storer.ResolveReference(r.references, plumbing.ReferenceName(full))
		if err == nil && !found.Hash().IsZero() {
			out = append(out, plumbing.NewHashReference(plumbing.ReferenceName(full), found.Hash()))
		}
	}
	return out, nil
}

// unbornBranch returns the branch that is checked out if it has no commit, or "" if it has one.
func (r *Repository) unbornBranch() string {
	if commit, err := r.Head(); err != nil || commit != nil {
		return ""
	}
	if head, err := r.references.Reference(plumbing.HEAD); err == nil && head.Type() == plumbing.SymbolicReference && !r.usesReftable {
		return "the branch " + head.Target().Short()
	}
	return "the branch that is checked out"
}

// resolveStep follows one step from the object of a text.
func (r *Repository) resolveStep(text, step string, at plumbing.Hash) (plumbing.Hash, error) {
	kind, number := step[:1], step[1:]
	switch {
	case strings.HasPrefix(step, "@{"), strings.HasPrefix(step, "^{/"):
		return r.resolveGitStep(text, step)
	case strings.HasPrefix(step, "^{") && strings.HasSuffix(step, "}"):
		return r.resolveTypeStep(text, step, at)
	case kind != "~" && kind != "^":
		return at, fmt.Errorf("%q after %s is not understood", boundedLine(step, 200), text)
	}
	count := 1
	if number != "" {
		var err error
		if count, err = strconv.Atoi(number); err != nil {
			return at, fmt.Errorf("%q after %s is not understood", boundedLine(step, 200), text)
		}
	}
	at, err := r.peelToCommit(text, at)
	if err != nil || count == 0 {
		return at, err
	}
	if kind == "^" {
		parents, hint, err := r.parents(at)
		if err == nil && count > len(parents) {
			err = fmt.Errorf("not found in %s: %s has %d parents, and %q is not one of them%s", r.Root, text, len(parents), step, hint)
		}
		if err != nil {
			return at, err
		}
		return parents[count-1], nil
	}
	for i := range count {
		parents, hint, err := r.parents(at)
		if err == nil && len(parents) == 0 {
			err = fmt.Errorf("not found in %s: the history of %s ends %d commits before it, and %q leads further%s", r.Root, text, i, step, hint)
		}
		if err != nil {
			return at, err
		}
		at = parents[0]
	}
	return at, nil
}

// parents returns the parents of a commit; at the end of a shallow clone none, with a hint.
func (r *Repository) parents(hash plumbing.Hash) ([]plumbing.Hash, string, error) {
	if ends, err := r.references.Shallow(); err == nil && slices.Contains(ends, hash) {
		return nil, r.shallowHint(), nil
	}
	commit, err := r.objects.commit(hash)
	if err != nil {
		return nil, "", err
	}
	return commit.ParentHashes, "", nil
}

// resolveGitStep follows a step that only git understands.
func (r *Repository) resolveGitStep(text, step string) (plumbing.Hash, error) {
	hash, err := r.program.resolveRevision(text + step)
	if unasked, ok := errors.AsType[*gitUnusableError](err); ok {
		return hash, fmt.Errorf("only git understands %q, and %s: give a branch, a tag or a commit", step, unasked.cause)
	}
	if unknown, ok := errors.AsType[*unknownRevisionError](err); ok {
		if pattern, is := strings.CutPrefix(step, "^{/"); is {
			return hash, fmt.Errorf("no commit of the history of %s has a message that matches %q: %s", text, strings.TrimSuffix(pattern, "}"), unknown.explanationOr("give a branch, a tag or a commit"))
		}
		return hash, fmt.Errorf("%q leads to no commit: %s", step, unknown.explanationOr("there is no such entry in the log, or it is not understood"))
	}
	return hash, err
}

// resolveTypeStep follows a step such as ^{commit}, which requires a type of object.
func (r *Repository) resolveTypeStep(text, step string, at plumbing.Hash) (plumbing.Hash, error) {
	switch want := strings.TrimSuffix(strings.TrimPrefix(step, "^{"), "}"); want {
	case "object":
		return at, nil
	case "", "commit":
		return r.peelToCommit(text, at)
	case "tag":
		if found, err := r.readObject(at); err == nil && found.Type() == plumbing.TagObject {
			return at, nil
		}
		return at, fmt.Errorf("%s is not an annotated tag, which %q requires", text, step)
	case "tree", "blob":
		return at, fmt.Errorf("%q names a %s, not a commit: give %s alone", step, want, text)
	}
	return at, fmt.Errorf("%q after %s is not understood: ^{commit}, ^{tag}, ^{/TEXT} and ^{} are known", boundedLine(step, 200), text)
}
