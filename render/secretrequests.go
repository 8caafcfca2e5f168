// SPDX-License-Identifier: Apache-2.0

package render

import (
	_ "embed" // the list of requests
	"strings"
	"sync"
)

// expectedRequests are the secrets that components requested in their last evaluation, by folder,
// or the recorded ones of the built-in catalogue. It is only an expectation that is compared with
// the actual requests, which vary by owner and catalogue.
var expectedRequests requestCache

// recordedRequests has a line per component: its folder, and the secrets that it requests for most
// owners. A test fails if it is outdated, which only costs time.
//
//go:embed requested.txt
var recordedRequests string

type requestCache struct {
	mutex sync.Mutex
	byDir map[string][]string // nil until first use
}

// get returns the sorted names, or false if unknown.
func (e *requestCache) get(dir string) ([]string, bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.load()
	names, ok := e.byDir[dir]
	return names, ok
}

func (e *requestCache) set(dir string, names []string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.load()
	e.byDir[dir] = names
}

// load loads the recorded requests.
func (e *requestCache) load() {
	if e.byDir == nil {
		e.byDir = parseRequestList(recordedRequests)
	}
}

// clear removes all expectations.
func (e *requestCache) clear() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.byDir = map[string][]string{}
}

// parseRequestList reads a list of requests.
func parseRequestList(list string) map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(list) {
		if words := strings.Fields(line); len(words) > 0 {
			out[words[0]] = words[1:]
		}
	}
	return out
}
