// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"

	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// fileContents are the objects of a file, which are read on first use. The key is the file's name
// and all inputs of its content, so that revisions of a landscape in memory share unchanged files.
type fileContents struct {
	mu      sync.Mutex
	readers []contentReader
}

// load returns the contents, calling from the first time. If from panics, the next caller retries.
func (c *fileContents) load(from func() []contentReader) []contentReader {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readers == nil {
		c.readers = from()
	}
	return c.readers
}

// sharedContents contains the contents that are in use, by key.
var sharedContents = struct {
	sync.Mutex
	files map[resultcache.Key]weak.Pointer[fileContents] // by digest of name and key
}{files: map[resultcache.Key]weak.Pointer[fileContents]{}}

// contentsOf returns the shared contents of a file, or new unread ones. The key has the name,
// because places contain it. It also has identified (the file system provides digests), because
// such contents have no text.
func (l *loader) contentsOf(name string, identified bool, file resultcache.Key) *fileContents {
	var w resultcache.Writer
	w.Text(l.relative(name))
	if identified {
		w.Text("identified")
	}
	w.Key(file)
	key := resultcache.Key(sha256.Sum256(w.Bytes()))
	sharedContents.Lock()
	defer sharedContents.Unlock()
	if c := sharedContents.files[key].Value(); c != nil {
		return c
	}
	c := &fileContents{}
	sharedContents.files[key] = weak.Make(c)
	runtime.AddCleanup(c, forgetContents, key)
	return c
}

// forgetContents removes contents that are no longer in use, unless new ones replaced them.
func forgetContents(key resultcache.Key) {
	sharedContents.Lock()
	defer sharedContents.Unlock()
	if sharedContents.files[key].Value() == nil {
		delete(sharedContents.files, key)
	}
}
