package render

import "sync"

// requested are the names of the secrets that components requested when they were evaluated last, by folder. It is only an
// expectation, which is compared with what a component requests: another owner may have another one, and another catalogue too.
var requested expectations

type expectations struct {
	mutex sync.Mutex
	byDir map[string][]string
}

// last gives the sorted names; false where nothing is known.
func (e *expectations) last(dir string) ([]string, bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	names, ok := e.byDir[dir]
	return names, ok
}

func (e *expectations) learn(dir string, names []string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.byDir == nil {
		e.byDir = map[string][]string{}
	}
	e.byDir[dir] = names
}

// forget makes the next evaluation of each component one that expects nothing.
func (e *expectations) forget() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.byDir = nil
}
