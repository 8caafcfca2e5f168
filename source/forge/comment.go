package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jenkins-x/go-scm/scm"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// pagesOfComments bounds the search for ours: 5,000 comments.
const pagesOfComments = 50

// Comment is the one comment that is kept in a pull request.
type Comment struct {
	// Marker is the id by which it is found again. It is in the comment, and not seen.
	Marker string
	// Body in Markdown. One of nothing but white space deletes the comment with DeleteEmpty, and is
	// an error without.
	Body        string
	DeleteEmpty bool
	// Author is the login that the token writes as, where it is known; else the forge is asked.
	Author string
	// Whole says in a comment that had to be cut where all of it is; unset: in the output of the
	// job.
	Whole string
}

// Outcome is what became of the comment.
type Outcome string

// The outcomes.
const (
	Created   Outcome = "created"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
	Deleted   Outcome = "deleted"
	Absent    Outcome = "absent" // nothing to say, and nothing was said
)

// Result of keeping the comment.
type Result struct {
	Outcome Outcome
	// Link to the comment, where the forge gives one.
	Link string
	// Cut is how many lines did not fit.
	Cut int
	// Removed is how many more comments with the marker there were, of runs at the same time.
	Removed int
}

var markerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/@:-]{0,99}$`)

// Patience says how long refusals that may pass are borne.
type Patience struct {
	Clock clock.Clock
	// Backoff between tries; its Steps are the tries.
	Backoff wait.Backoff
	// Waiting is told before each wait; nil: nobody is.
	Waiting func(err error, wait time.Duration)
}

// Patient is what suits a job in CI: five tries within about a minute.
func Patient(c clock.Clock) Patience {
	return Patience{Clock: c, Backoff: wait.Backoff{Duration: 2 * time.Second, Factor: 2, Jitter: 0.2, Steps: 5, Cap: 5 * time.Minute}}
}

// Keep leaves exactly one comment of the token's user with the marker in the pull request (merge
// request) of that number. It looks anew before each try, so that one whose answer got lost is not
// written twice, and once more after it made one: of those that runs at the same time made, the
// oldest stays.
func (f *Forge) Keep(ctx context.Context, repository string, number int, c Comment, p Patience) (Result, error) {
	if err := checkRepository(repository); err != nil {
		return Result{}, err
	}
	if number <= 0 {
		return Result{}, fmt.Errorf("pull request %d: want a number from 1 on", number)
	}
	if !markerName.MatchString(c.Marker) {
		return Result{}, fmt.Errorf("marker %q: want up to 100 letters, digits and ._/@:- in it", plain(c.Marker, 120))
	}
	empty := strings.TrimSpace(c.Body) == ""
	if empty && !c.DeleteEmpty {
		return Result{}, errors.New("there is no text to comment with")
	}
	pull := pull{Forge: f, repository: repository, number: number, marker: "<!-- pergola:" + c.Marker + " -->", author: c.Author}
	body, cut := "", 0
	if !empty {
		body, cut = fit(pull.marker+"\n"+c.Body, limits[f.provider], c.Whole)
	}
	for {
		result, err := pull.keep(ctx, body)
		if err == nil {
			result.Cut = cut
			return result, nil
		}
		err = f.explain(fmt.Sprintf("commenting on %s#%d", repository, number), err)
		temporary, least := Temporary(err)
		if !temporary || p.Backoff.Steps <= 1 || ctx.Err() != nil {
			return Result{}, err
		}
		wait := max(p.Backoff.Step(), least)
		if until, ok := ctx.Deadline(); ok && p.Clock.Now().Add(wait).After(until) {
			return Result{}, fmt.Errorf("%w; the next try would be in %s, when the time is over", err, wait.Round(time.Second))
		}
		if p.Waiting != nil {
			p.Waiting(err, wait)
		}
		select {
		case <-ctx.Done():
			return Result{}, err
		case <-p.Clock.After(wait):
		}
	}
}

// pull is one pull request, and how ours are known in it.
type pull struct {
	*Forge
	repository string
	number     int
	marker     string
	author     string
	asked      bool
}

func (p *pull) keep(ctx context.Context, body string) (Result, error) {
	if p.author == "" && !p.asked {
		login, err := p.Whoami(ctx)
		if err != nil {
			return Result{}, err
		}
		p.author, p.asked = login, true
	}
	ours, err := p.ours(ctx)
	if err != nil {
		return Result{}, err
	}
	if body == "" {
		for _, comment := range ours {
			if err := p.remove(ctx, comment.ID); err != nil {
				return Result{}, err
			}
		}
		if len(ours) == 0 {
			return Result{Outcome: Absent}, nil
		}
		return Result{Outcome: Deleted, Removed: len(ours) - 1}, nil
	}
	outcome := Unchanged
	if len(ours) == 0 {
		made, err := p.create(ctx, body)
		if err != nil {
			return Result{}, err
		}
		outcome = Created
		if ours, err = p.ours(ctx); err != nil {
			// it was written; that it cannot be seen yet harms nobody
			return Result{Outcome: outcome, Link: made.Link}, nil
		}
		ours = with(ours, made)
	}
	for _, comment := range ours[1:] {
		if err := p.remove(ctx, comment.ID); err != nil {
			return Result{}, err
		}
	}
	oldest := ours[0]
	if !same(oldest.Body, body) {
		if _, _, err := p.client.PullRequests.EditComment(ctx, p.repository, p.number, oldest.ID, &scm.CommentInput{Body: body}); err != nil {
			return Result{}, err
		}
		outcome = Updated
	}
	return Result{Outcome: outcome, Link: oldest.Link, Removed: len(ours) - 1}, nil
}

// ours are the comments that begin with the marker and are by the token's user, the oldest first.
// What others write with our marker stays theirs: who writes a comment can change it later.
func (p *pull) ours(ctx context.Context) ([]*scm.Comment, error) {
	var out []*scm.Comment
	seen := map[int]bool{}
	for page := 1; page <= pagesOfComments; page++ {
		opts := &scm.ListOptions{Page: page, Size: 100}
		if p.provider == GitLab {
			opts.Sort = "asc"
		}
		comments, res, err := p.client.PullRequests.ListComments(ctx, p.repository, p.number, opts)
		if err != nil {
			return nil, err
		}
		for _, comment := range comments {
			if !seen[comment.ID] && strings.HasPrefix(comment.Body, p.marker) && p.own(comment.Author.Login) {
				out = append(out, comment)
			}
			seen[comment.ID] = true
		}
		if res == nil || res.Page.Next <= page {
			break
		}
	}
	slices.SortFunc(out, func(a, b *scm.Comment) int { return a.ID - b.ID })
	return out, nil
}

// own says whether a login is the token's. Tokens of CI jobs may not ask who they are: then it is a
// login that only such a token can have.
func (p *pull) own(login string) bool {
	switch {
	case p.author != "":
		return strings.EqualFold(login, p.author)
	case p.provider == GitHub:
		return strings.HasSuffix(login, "[bot]") // no user can be called so
	case p.provider == GitLab:
		return false
	}
	return login == "gitea-actions" || login == "forgejo-actions" // reserved names
}

// with is the list with the comment that was made, where it is not in it: what other runs delete
// while the pages are read moves the later ones to a page that was read already. So each run knows
// of its own and of the oldest, before which nothing is deleted, and of two at least one is removed
// by who made it.
func with(ours []*scm.Comment, made *scm.Comment) []*scm.Comment {
	i, listed := slices.BinarySearchFunc(ours, made.ID, func(c *scm.Comment, id int) int { return c.ID - id })
	if listed {
		return ours
	}
	return slices.Insert(ours, i, made)
}

// create makes a comment; what comes back has its id.
func (p *pull) create(ctx context.Context, body string) (*scm.Comment, error) {
	if p.provider == GitLab {
		// The library sends the text as a part of the address, which is too long for it.
		var made struct {
			ID int `json:"id"`
		}
		err := p.send(ctx, http.MethodPost, fmt.Sprintf("%s/merge_requests/%d/notes", gitlabProject(p.repository), p.number), map[string]string{"body": body}, &made)
		return &scm.Comment{ID: made.ID, Body: body}, err
	}
	made, _, err := p.client.PullRequests.CreateComment(ctx, p.repository, p.number, &scm.CommentInput{Body: body})
	return made, err
}

func (p *pull) remove(ctx context.Context, id int) error {
	_, err := p.client.PullRequests.DeleteComment(ctx, p.repository, p.number, id)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound || errors.Is(err, scm.ErrNotFound) {
		return nil // another run was faster
	}
	return err
}

// same compares what forges keep of a text: line breaks and the white space at its end change.
func same(a, b string) bool {
	normal := func(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }
	return normal(a) == normal(b)
}
