package render

import (
	_ "embed" // the list of requests
	"strings"
	"sync"
)

// requested are the names of the secrets that components requested when they were evaluated last,
// by folder, or those that are recorded of the catalogue of this program. It is only an
// expectation, which is compared with what a component requests: another owner may have another
// one, and another catalogue too.
var requested expectations

// recordedRequests has one line for each component: its folder, and the names of the secrets that
// it requests of most owners. A test says when it is no longer so, which costs time and nothing
// else.
//
//go:embed requested.txt
var recordedRequests string

type expectations struct {
	mutex sync.Mutex
	byDir map[string][]string // nil before anybody asked
}

// last gives the sorted names; false where nothing is known.
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

// begin takes what is recorded.
func (e *expectations) begin() {
	if e.byDir == nil {
		e.byDir = requestsIn(recordedRequests)
	}
}

// forget makes the next evaluation of each component one that expects nothing.
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
