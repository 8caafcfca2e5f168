// SPDX-License-Identifier: Apache-2.0

package forgetest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Token is the only accepted token.
const Token = "forge-t0ken-not-to-be-seen"

// Comment is the comment of a pull request.
type Comment struct {
	ID           int
	Author, Body string
}

// Status is the status of a commit.
type Status struct {
	Repository, Commit, State, Context, Description, Target string
}

// Failure replaces an answer.
type Failure struct {
	// Method and path suffix of the requests that fail; it is "" for all.
	Method, Path string
	Status       int
	Header       map[string]string
	Body         string
	// AfterExecution executes the request before it fails: the answer got lost.
	AfterExecution bool
}

// Server is a fake forge.
type Server struct {
	*httptest.Server
	provider string

	mu       sync.Mutex
	Login    string // user of the token; "" means that the token may not ask
	BotLogin string // author of comments by a token that may not ask
	PageSize int
	// Before and After are called around each request.
	Before, After func(*http.Request)
	comments      []Comment
	statuses      []Status
	failures      []Failure
	requests      []string
	nextID        int
}

// New starts a forge of a provider; it stops with the test.
func New(t testing.TB, provider string) *Server {
	t.Helper()
	s := &Server{provider: provider, Login: "pergola-bot", PageSize: 3, nextID: 100}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Fail queues failures, one for each request.
func (s *Server) Fail(failures ...Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, failures...)
}

// AddComment adds a comment by an author.
func (s *Server) AddComment(author, body string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addComment(author, body).ID
}

func (s *Server) addComment(author, body string) Comment {
	s.nextID++
	c := Comment{s.nextID, author, body}
	s.comments = append(s.comments, c)
	return c
}

// Comments returns all comments.
func (s *Server) Comments() []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.comments)
}

// Statuses returns all statuses in the order they were set.
func (s *Server) Statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.statuses)
}

// Requests returns the methods and paths of all requests.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP answers like the provider.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	s.mu.Lock()
	s.requests = append(s.requests, req.Method+" "+req.URL.EscapedPath())
	failure := s.nextFailure(req)
	s.mu.Unlock()
	if failure != nil {
		if failure.AfterExecution {
			s.serveAPI(httptest.NewRecorder(), req, body)
		}
		for k, v := range failure.Header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(failure.Status)
		_, _ = io.WriteString(w, failure.Body)
		return
	}
	if s.Before != nil {
		s.Before(req)
	}
	s.serveAPI(w, req, body)
	if s.After != nil {
		s.After(req)
	}
}

func (s *Server) nextFailure(req *http.Request) *Failure {
	for i, f := range s.failures {
		if (f.Method == "" || f.Method == req.Method) && strings.HasSuffix(req.URL.Path, f.Path) {
			s.failures = slices.Delete(s.failures, i, i+1)
			return &f
		}
	}
	return nil
}

func (s *Server) serveAPI(w http.ResponseWriter, req *http.Request, body []byte) {
	header := map[string]string{"github": "Authorization", "gitlab": "Private-Token"}[s.provider]
	want := map[string]string{"github": "Bearer " + Token, "gitlab": Token}[s.provider]
	if header == "" {
		header, want = "Authorization", "token "+Token
	}
	if req.Header.Get(header) != want {
		writeError(w, http.StatusUnauthorized, "401 Unauthorized")
		return
	}
	api := map[string]string{"github": "/api/v3/", "gitlab": "/api/v4/"}[s.provider]
	if api == "" {
		api = "/api/v1/"
	}
	path, ok := strings.CutPrefix(req.URL.EscapedPath(), api)
	if !ok {
		writeError(w, http.StatusNotFound, "Not Found")
		return
	}
	if path == "user" {
		s.serveUser(w)
		return
	}
	if s.provider == "gitlab" {
		s.serveGitLab(w, req, path, body)
		return
	}
	s.serveGitHub(w, req, path, body)
}

func writeError(w http.ResponseWriter, status int, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func (s *Server) serveUser(w http.ResponseWriter) {
	if s.Login == "" {
		writeError(w, http.StatusForbidden, "Resource not accessible by integration")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": 7, "login": s.Login, "username": s.Login, "name": "Pergola"})
}

// author is the author of a request's comment.
func (s *Server) author() string {
	if s.Login != "" {
		return s.Login
	}
	return s.BotLogin
}

func (s *Server) serveGitHub(w http.ResponseWriter, req *http.Request, path string, body []byte) {
	parts := strings.Split(path, "/")
	var in struct{ Body, State, Context, Description, Target_url string }
	if len(body) > 0 && json.Unmarshal(body, &in) != nil {
		writeError(w, http.StatusBadRequest, "Problems parsing JSON")
		return
	}
	switch {
	case len(parts) == 5 && parts[0] == "repos" && parts[3] == "statuses" && req.Method == http.MethodPost:
		s.addStatus(Status{parts[1] + "/" + parts[2], parts[4], in.State, in.Context, in.Description, in.Target_url})
		writeJSON(w, http.StatusCreated, map[string]any{"state": in.State, "context": in.Context})
	case len(parts) == 6 && parts[3] == "issues" && parts[5] == "comments":
		s.serveComments(w, req, in.Body)
	case len(parts) == 6 && parts[3] == "issues" && parts[4] == "comments":
		s.serveComment(w, req, parts[5], in.Body)
	default:
		writeError(w, http.StatusNotFound, "Not Found")
	}
}

func (s *Server) serveGitLab(w http.ResponseWriter, req *http.Request, path string, body []byte) {
	parts := strings.Split(path, "/")
	var in struct {
		Body, State, Name, Description string
		TargetURL                      *string `json:"target_url"`
	}
	if len(req.URL.RawQuery) > 4096 {
		writeError(w, http.StatusRequestURITooLong, "URI too long")
		return
	}
	if len(body) > 0 && json.Unmarshal(body, &in) != nil {
		writeError(w, http.StatusBadRequest, "400 Bad Request")
		return
	}
	if len(parts) < 4 || parts[0] != "projects" || !strings.Contains(parts[1], "%2F") {
		writeError(w, http.StatusNotFound, "404 Project Not Found")
		return
	}
	project := strings.ReplaceAll(parts[1], "%2F", "/")
	switch {
	case parts[2] == "statuses" && req.Method == http.MethodPost:
		status := Status{project, parts[3], in.State, in.Name, in.Description, ""}
		if in.TargetURL != nil {
			status.Target = *in.TargetURL
			if status.Target == "" {
				writeJSON(w, http.StatusBadRequest, map[string]any{"message": map[string]any{"target_url": []string{"is blocked: Only allowed schemes are http, https"}}})
				return
			}
		}
		if last := s.lastState(parts[3], in.Name); last == in.State {
			writeError(w, http.StatusBadRequest, fmt.Sprintf("Cannot transition status via :enqueue from :%s (Reason(s): Status cannot transition via \"enqueue\")", last))
			return
		}
		s.addStatus(status)
		writeJSON(w, http.StatusCreated, map[string]any{"status": in.State, "name": in.Name})
	case len(parts) == 5 && parts[2] == "merge_requests" && parts[4] == "notes":
		s.serveComments(w, req, in.Body)
	case len(parts) == 6 && parts[2] == "merge_requests" && parts[4] == "notes":
		s.serveComment(w, req, parts[5], in.Body)
	default:
		writeError(w, http.StatusNotFound, "404 Not Found")
	}
}

func (s *Server) lastState(commit, context string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, status := range slices.Backward(s.statuses) {
		if status.Commit == commit && status.Context == context {
			return status.State
		}
	}
	return ""
}

func (s *Server) addStatus(status Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statuses = append(s.statuses, status)
}

func (s *Server) commentJSON(c Comment) map[string]any {
	user := map[string]any{"id": 7, "login": c.Author, "username": c.Author}
	return map[string]any{
		"id": c.ID, "body": c.Body, "user": user, "author": user, "html_url": fmt.Sprintf("%s/comment/%d", s.URL, c.ID),
		"created_at": "2026-05-04T12:00:00Z", "updated_at": "2026-05-04T12:00:00Z", "system": false,
	}
}

// serveComments returns the comments of a pull request, paginated like the forge, or creates one.
func (s *Server) serveComments(w http.ResponseWriter, req *http.Request, body string) {
	if req.Method == http.MethodPost {
		s.mu.Lock()
		c := s.addComment(s.author(), body)
		s.mu.Unlock()
		writeJSON(w, http.StatusCreated, s.commentJSON(c))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []map[string]any{}
	page, _ := strconv.Atoi(req.URL.Query().Get("page"))
	page = max(page, 1)
	size := s.PageSize
	if s.provider == "gitea" || s.provider == "forgejo" {
		size, page = len(s.comments)+1, 1 // they return all
	}
	for i, c := range s.comments {
		if i/size == page-1 {
			out = append(out, s.commentJSON(c))
		}
	}
	if page*size < len(s.comments) {
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?page=%d>; rel="next"`, s.URL, req.URL.EscapedPath(), page+1))
	}
	writeJSON(w, http.StatusOK, out)
}

// serveComment serves one comment: only its author may change it.
func (s *Server) serveComment(w http.ResponseWriter, req *http.Request, id, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.comments, func(c Comment) bool { return strconv.Itoa(c.ID) == id })
	if i < 0 {
		writeError(w, http.StatusNotFound, "Not Found")
		return
	}
	if s.comments[i].Author != s.author() {
		writeError(w, http.StatusForbidden, "not yours")
		return
	}
	change := map[bool]string{true: http.MethodPut, false: http.MethodPatch}[s.provider == "gitlab"]
	switch req.Method {
	case change:
		s.comments[i].Body = body
		writeJSON(w, http.StatusOK, s.commentJSON(s.comments[i]))
	case http.MethodDelete:
		s.comments = slices.Delete(s.comments, i, i+1)
		w.WriteHeader(http.StatusNoContent)
	default:
		writeError(w, http.StatusMethodNotAllowed, "Method Not Allowed")
	}
}
