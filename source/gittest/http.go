// SPDX-License-Identifier: Apache-2.0

package gittest

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// HTTPServer serves the repositories of a folder with git-http-backend.
type HTTPServer struct {
	*httptest.Server

	mutex     sync.Mutex
	requests  []string
	bytesSent int64
	intercept func(http.ResponseWriter, *http.Request) bool
}

// ServeHTTP serves a folder over plain HTTP.
func ServeHTTP(t testing.TB, root string) *HTTPServer {
	t.Helper()
	s := newHTTPServer(t, root)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// ServeTLS serves a folder over HTTPS. The certificate is s.Certificate().
func ServeTLS(t testing.TB, root string) *HTTPServer {
	t.Helper()
	s := newHTTPServer(t, root)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func newHTTPServer(t testing.TB, root string) *HTTPServer {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	require.NoError(t, err)
	s := &HTTPServer{}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"),
		Env: append(IsolatedEnvironment(), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1")}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
		intercept := s.intercept
		s.mutex.Unlock()
		counting := &countingWriter{ResponseWriter: w, server: s}
		if intercept != nil && intercept(counting, r) {
			return
		}
		backend.ServeHTTP(counting, r)
	}))
	return s
}

// Intercept sets a function to call before each request; true means that it has answered. Nil
// removes it.
func (s *HTTPServer) Intercept(by func(http.ResponseWriter, *http.Request) bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.intercept = by
}

// ResetCounters clears the counters and returns them: the requests in order, and the number of
// bytes sent.
func (s *HTTPServer) ResetCounters() ([]string, int64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	requests, sent := s.requests, s.bytesSent
	s.requests, s.bytesSent = nil, 0
	return requests, sent
}

type countingWriter struct {
	http.ResponseWriter
	server *HTTPServer
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.server.mutex.Lock()
	c.server.bytesSent += int64(n)
	c.server.mutex.Unlock()
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *countingWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }
