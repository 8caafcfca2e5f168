package render

import (
	_ "embed" // the list of requests
	"strings"
	"sync"
)

// requested are the secrets that components requested in their last evaluation, by folder, or the
// recorded ones of the built-in catalogue. It is only an expectation that is compared with the
// actual requests, which vary by owner and catalogue.
var requested expectations

// recordedRequests has a line per component: its folder, and the secrets that it requests for most
// owners. A test fails if it is outdated, which only costs time.
//
//go:embed requested.txt
var recordedRequests string

type expectations struct {
	mutex sync.Mutex
	byDir map[string][]string // nil until first use
}

// last returns the sorted names; false if unknown.
func (e *expectations) last(dir string) ([]string, bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.begin()
	names, ok := e.byDir[dir]
	return names, ok
}

func (e *expectations) learn(dir string, names []string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.begin()
	e.byDir[dir] = names
}

// begin loads the recorded requests.
func (e *expectations) begin() {
	if e.byDir == nil {
		e.byDir = requestsIn(recordedRequests)
	}
}

// forget removes all expectations.
func (e *expectations) forget() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.byDir = map[string][]string{}
}

// requestsIn reads a list of requests.
func requestsIn(list string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(list) {
		if words := strings.Fields(line); len(words) > 0 {
			out[words[0]] = words[1:]
		}
	}
	return out
}
