package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/jenkins-x/go-scm/scm"
)

// State of a commit.
type State string

// The states that all forges have.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// Status is what is said about a commit.
type Status struct {
	State State
	// Context tells statuses of one commit apart: pergola/<landscape>.
	Context string
	// Description is a sentence; it is cut to what the forge takes.
	Description string
	// Target is the page it links to; "" for none.
	Target string
}

var commitName = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// SetStatus says it, once: Temporary tells whether to try again.
func (f *Forge) SetStatus(ctx context.Context, repository, commit string, s Status) error {
	if err := checkRepository(repository); err != nil {
		return err
	}
	if !commitName.MatchString(commit) {
		return fmt.Errorf("commit %q: want 40 or 64 hexadecimal digits", plain(commit, 80))
	}
	s.Description = plain(s.Description, map[bool]int{true: 255, false: 140}[f.provider == GitLab])
	var err error
	if f.provider == GitLab {
		err = f.setGitLabStatus(ctx, repository, commit, s)
	} else {
		state := map[State]scm.State{Pending: scm.StatePending, Success: scm.StateSuccess}[s.State]
		if s.State == Failure {
			state = scm.StateFailure
		}
		_, _, err = f.client.Repositories.CreateStatus(ctx, repository, commit, &scm.StatusInput{State: state, Label: s.Context, Desc: s.Description, Target: s.Target})
	}
	return f.explain(fmt.Sprintf("setting the status of commit %.12s in %s", commit, repository), err)
}

// setGitLabStatus is not the library's: it asks for the project first, and sends an empty target,
// which GitLab refuses.
func (f *Forge) setGitLabStatus(ctx context.Context, repository, commit string, s Status) error {
	state := map[State]string{Pending: "pending", Success: "success", Failure: "failed"}[s.State]
	in := map[string]string{"state": state, "name": s.Context, "description": s.Description}
	if s.Target != "" {
		in["target_url"] = s.Target
	}
	err := f.send(ctx, http.MethodPost, gitlabProject(repository)+"/statuses/"+commit, in, nil)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest && strings.Contains(refused.Message, "Cannot transition status") {
		return nil // it has this state already
	}
	return err
}

func gitlabProject(repository string) string { return "api/v4/projects/" + url.QueryEscape(repository) }

// send makes a request of ours with the client of the library, and reads the answer into out where
// that is not nil.
func (f *Forge) send(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	res, err := f.client.Do(ctx, &scm.Request{Method: method, Path: path, Header: http.Header{"Content-Type": {"application/json"}}, Body: bytes.NewReader(body)})
	if err != nil {
		return err
	}
	if out != nil {
		err = json.NewDecoder(res.Body).Decode(out)
	}
	return errors.Join(err, res.Body.Close())
}
