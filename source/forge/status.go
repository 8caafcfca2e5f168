// SPDX-License-Identifier: Apache-2.0

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

// State is the state of a commit.
type State string

// The states that all forges support.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
)

// Status is a status of a commit.
type Status struct {
	State State
	// Context distinguishes the statuses of one commit: pergola/<landscape>.
	Context string
	// Description is a sentence; it is truncated to the limit of the forge.
	Description string
	// Target is the linked page; it is "" for none.
	Target string
}

var commitHashPattern = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// SetStatus sets a status, in one try: Temporary reports whether to retry.
func (f *Forge) SetStatus(ctx context.Context, repository, commit string, s Status) error {
	if err := checkRepository(repository); err != nil {
		return err
	}
	if !commitHashPattern.MatchString(commit) {
		return fmt.Errorf("commit %q: want 40 or 64 hexadecimal digits", boundedLine(commit, 80))
	}
	s.Description = boundedLine(s.Description, map[bool]int{true: 255, false: 140}[f.provider == GitLab])
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
	return f.wrapError(fmt.Sprintf("setting the status of commit %.12s in %s", commit, repository), err)
}

// setGitLabStatus replaces the library's call, which first asks for the project, and sends an empty
// target that GitLab refuses.
func (f *Forge) setGitLabStatus(ctx context.Context, repository, commit string, s Status) error {
	state := map[State]string{Pending: "pending", Success: "success", Failure: "failed"}[s.State]
	in := map[string]string{"state": state, "name": s.Context, "description": s.Description}
	if s.Target != "" {
		in["target_url"] = s.Target
	}
	err := f.sendJSON(ctx, http.MethodPost, gitlabProject(repository)+"/statuses/"+commit, in, nil)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest && strings.Contains(refused.Message, "Cannot transition status") {
		return nil // it already has this state
	}
	return err
}

func gitlabProject(repository string) string { return "api/v4/projects/" + url.QueryEscape(repository) }

// sendJSON sends a request with the library's client, and decodes the answer into out unless it is
// nil.
func (f *Forge) sendJSON(ctx context.Context, method, path string, in, out any) error {
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
