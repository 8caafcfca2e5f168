// SPDX-License-Identifier: Apache-2.0

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

// maxCommentPages bounds the search for our comment: 5,000 comments.
const maxCommentPages = 50

// Comment is the single comment that Pergola maintains in a pull request.
type Comment struct {
	// Marker identifies the comment. It is an invisible part of the text.
	Marker string
	// Body is the body in Markdown. If it is only white space, DeleteEmpty deletes the comment;
	// without DeleteEmpty it is an error.
	Body        string
	DeleteEmpty bool
	// Author is the login of the token, if known; otherwise the forge is asked.
	Author string
	// FullTextLocation says in a truncated comment where the full text is; the default is the
	// output of the job.
	FullTextLocation string
}

// Outcome is the result for the comment.
type Outcome string

// The outcomes.
const (
	Created   Outcome = "created"
	Updated   Outcome = "updated"
	Unchanged Outcome = "unchanged"
	Deleted   Outcome = "deleted"
	Absent    Outcome = "absent" // there is no text, and there was no comment
)

// Result is the result of Keep.
type Result struct {
	Outcome Outcome
	// Link is the link to the comment, if the forge returns one.
	Link string
	// TruncatedLines is the number of lines that did not fit.
	TruncatedLines int
	// RemovedDuplicates is the number of removed duplicates with the marker, from concurrent runs.
	RemovedDuplicates int
}

var markerNamePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/@:-]{0,99}$`)

// RetryPolicy limits retries of temporary refusals.
type RetryPolicy struct {
	Clock clock.Clock
	// Backoff between tries; its Steps are the tries.
	Backoff wait.Backoff
	// OnWait is called before each wait; may be nil.
	OnWait func(err error, wait time.Duration)
}

// CIRetryPolicy returns the limits for a CI job: five tries within about a minute.
func CIRetryPolicy(c clock.Clock) RetryPolicy {
	return RetryPolicy{Clock: c, Backoff: wait.Backoff{Duration: 2 * time.Second, Factor: 2, Jitter: 0.2, Steps: 5, Cap: 5 * time.Minute}}
}

// EnsureComment creates or updates the one comment with the marker by the token's user in a pull
// request (merge request). It lists comments before each try, so that a comment whose answer got
// lost is not duplicated. After creating one it lists them again and deletes all but the oldest,
// because concurrent runs may have created more.
func (f *Forge) EnsureComment(ctx context.Context, repository string, number int, c Comment, p RetryPolicy) (Result, error) {
	if err := checkRepository(repository); err != nil {
		return Result{}, err
	}
	if number <= 0 {
		return Result{}, fmt.Errorf("pull request %d: want a number from 1 on", number)
	}
	if !markerNamePattern.MatchString(c.Marker) {
		return Result{}, fmt.Errorf("marker %q: want up to 100 letters, digits and ._/@:-", boundedLine(c.Marker, 120))
	}
	empty := strings.TrimSpace(c.Body) == ""
	if empty && !c.DeleteEmpty {
		return Result{}, errors.New("the text of the comment is empty")
	}
	pull := pullRequest{Forge: f, repository: repository, number: number, marker: "<!-- pergola:" + c.Marker + " -->", author: c.Author}
	body, cut := "", 0
	if !empty {
		body, cut = truncateMarkdown(pull.marker+"\n"+c.Body, commentLimits[f.provider], c.FullTextLocation)
	}
	for {
		result, err := pull.ensureComment(ctx, body)
		if err == nil {
			result.TruncatedLines = cut
			return result, nil
		}
		err = f.wrapError(fmt.Sprintf("commenting on %s#%d", repository, number), err)
		temporary, least := IsTemporary(err)
		if !temporary || p.Backoff.Steps <= 1 || ctx.Err() != nil {
			return Result{}, err
		}
		wait := max(p.Backoff.Step(), least)
		if until, ok := ctx.Deadline(); ok && p.Clock.Now().Add(wait).After(until) {
			return Result{}, fmt.Errorf("%w; the next attempt would be in %s, after the deadline", err, wait.Round(time.Second))
		}
		if p.OnWait != nil {
			p.OnWait(err, wait)
		}
		select {
		case <-ctx.Done():
			return Result{}, err
		case <-p.Clock.After(wait):
		}
	}
}

// pullRequest is one pull request, and identifies our comments in it.
type pullRequest struct {
	*Forge
	repository       string
	number           int
	marker           string
	author           string
	isLoginRequested bool
}

func (p *pullRequest) ensureComment(ctx context.Context, body string) (Result, error) {
	if p.author == "" && !p.isLoginRequested {
		login, err := p.TokenLogin(ctx)
		if err != nil {
			return Result{}, err
		}
		p.author, p.isLoginRequested = login, true
	}
	ours, err := p.ownComments(ctx)
	if err != nil {
		return Result{}, err
	}
	if body == "" {
		for _, comment := range ours {
			if err := p.deleteComment(ctx, comment.ID); err != nil {
				return Result{}, err
			}
		}
		if len(ours) == 0 {
			return Result{Outcome: Absent}, nil
		}
		return Result{Outcome: Deleted, RemovedDuplicates: len(ours) - 1}, nil
	}
	outcome := Unchanged
	if len(ours) == 0 {
		made, err := p.createComment(ctx, body)
		if err != nil {
			return Result{}, err
		}
		outcome = Created
		if ours, err = p.ownComments(ctx); err != nil {
			// the comment was created; it is harmless that the list fails
			return Result{Outcome: outcome, Link: made.Link}, nil
		}
		ours = withCreated(ours, made)
	}
	for _, comment := range ours[1:] {
		if err := p.deleteComment(ctx, comment.ID); err != nil {
			return Result{}, err
		}
	}
	oldest := ours[0]
	if !isSameText(oldest.Body, body) {
		if _, _, err := p.client.PullRequests.EditComment(ctx, p.repository, p.number, oldest.ID, &scm.CommentInput{Body: body}); err != nil {
			return Result{}, err
		}
		outcome = Updated
	}
	return Result{Outcome: outcome, Link: oldest.Link, RemovedDuplicates: len(ours) - 1}, nil
}

// ownComments returns the comments with the marker by the token's user, the oldest first. It
// ignores other authors, because they could change such a comment later.
func (p *pullRequest) ownComments(ctx context.Context) ([]*scm.Comment, error) {
	var out []*scm.Comment
	seen := map[int]bool{}
	for page := 1; page <= maxCommentPages; page++ {
		opts := &scm.ListOptions{Page: page, Size: 100}
		if p.provider == GitLab {
			opts.Sort = "asc"
		}
		comments, res, err := p.client.PullRequests.ListComments(ctx, p.repository, p.number, opts)
		if err != nil {
			return nil, err
		}
		for _, comment := range comments {
			if !seen[comment.ID] && strings.HasPrefix(comment.Body, p.marker) && p.isOwnLogin(comment.Author.Login) {
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

// isOwnLogin reports whether a login is the token's. Tokens of CI jobs often cannot ask for their
// user; then only logins that such a token can have count.
func (p *pullRequest) isOwnLogin(login string) bool {
	switch {
	case p.author != "":
		return strings.EqualFold(login, p.author)
	case p.provider == GitHub:
		return strings.HasSuffix(login, "[bot]") // no user can have such a name
	case p.provider == GitLab:
		return false
	}
	return login == "gitea-actions" || login == "forgejo-actions" // reserved names
}

// withCreated adds the created comment if the list lacks it. Other runs delete comments while the
// pages are read, which moves later comments to pages that were already read. So each run knows its
// own comment and the oldest, before which nothing is deleted. At least one of two comments is
// removed by its creator.
func withCreated(ours []*scm.Comment, made *scm.Comment) []*scm.Comment {
	i, listed := slices.BinarySearchFunc(ours, made.ID, func(c *scm.Comment, id int) int { return c.ID - id })
	if listed {
		return ours
	}
	return slices.Insert(ours, i, made)
}

// createComment creates a comment; the result has its id.
func (p *pullRequest) createComment(ctx context.Context, body string) (*scm.Comment, error) {
	if p.provider == GitLab {
		// The library sends the text in the URL, which is too long for it.
		var made struct {
			ID int `json:"id"`
		}
		err := p.sendJSON(ctx, http.MethodPost, fmt.Sprintf("%s/merge_requests/%d/notes", gitlabProject(p.repository), p.number), map[string]string{"body": body}, &made)
		return &scm.Comment{ID: made.ID, Body: body}, err
	}
	made, _, err := p.client.PullRequests.CreateComment(ctx, p.repository, p.number, &scm.CommentInput{Body: body})
	return made, err
}

func (p *pullRequest) deleteComment(ctx context.Context, id int) error {
	_, err := p.client.PullRequests.DeleteComment(ctx, p.repository, p.number, id)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound || errors.Is(err, scm.ErrNotFound) {
		return nil // another run deleted it first
	}
	return err
}

// isSameText compares texts as forges store them: line breaks and trailing white space may change.
func isSameText(a, b string) bool {
	normal := func(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }
	return normal(a) == normal(b)
}
