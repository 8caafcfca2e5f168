package landscapes

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"

	"github.com/pergola-dev/pergola/schemas/kept"
)

// contents are those of the objects of a file, read when somebody first asks. They belong to the
// name of a file and to everything that its key is made of, so that revisions of a landscape which
// are held at the same time have one copy of what did not change.
type contents struct {
	mu sync.Mutex
	of []reader
}

// read gives the contents. from is asked if nobody has read them; should it panic, the next one
// asks again.
func (c *contents) read(from func() []reader) []reader {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = from()
	}
	return c.of
}

// held are the contents that somebody holds, by key.
var held = struct {
	sync.Mutex
	files map[kept.Key]weak.Pointer[contents] // by digest of name and key
}{files: map[kept.Key]weak.Pointer[contents]{}}

// contentsOf gives those of a file: the ones that somebody holds already, or new ones, which nobody
// has read. The name counts, because places are in a file of that name, and whether the file system
// knows contents apart (identified), because then they have no text.
func (l *loader) contentsOf(name string, identified bool, file kept.Key) *contents {
	var w kept.Writer
	w.Text(l.relative(name))
	if identified {
		w.Text("identified")
	}
	w.Key(file)
	key := kept.Key(sha256.Sum256(w.Bytes()))
	held.Lock()
	defer held.Unlock()
	if c := held.files[key].Value(); c != nil {
		return c
	}
	c := &contents{}
	held.files[key] = weak.Make(c)
	runtime.AddCleanup(c, forgetContents, key)
	return c
}

// forgetContents takes out what nobody holds any more, unless somebody has read it anew meanwhile.
func forgetContents(key kept.Key) {
	held.Lock()
	defer held.Unlock()
	if held.files[key].Value() == nil {
		delete(held.files, key)
	}
}
