package source

import (
	"bytes"
	"crypto/sha1" // The checksum of Git's packs.
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	notesFile = "remote.json"
	// incoming is the beginning of names of what is not complete yet.
	incoming = "incoming-"
	// objectCacheSize bounds the objects that are kept unpacked in memory.
	objectCacheSize = 8 * cache.MiByte
	// maxPacks is how many fetches a generation of the cache holds before it is written anew.
	maxPacks = 48
	// keptCommits is how many commits that were looked at last stay in the cache.
	keptCommits = 32
)

// gitCache keeps what was fetched of one remote:
//
//	remote.json      what is remembered: the URL, tags, branches, commits that were looked at
//	objects-<n>      a bare repository of packs; a later n when it was written anew
//	incoming-*       a transfer under way
type gitCache struct {
	dir     string
	notes   notes
	storage *filesystem.Storage
	objects *objects
	// unpacked are objects that were read last.
	unpacked cache.Object
	// suspect is set when something could not be read that should be there.
	suspect *atomic.Bool
}

// notes are what a remote remembers.
type notes struct {
	URL        string `json:"url"`
	Generation int    `json:"generation"`
	// Tags and the commits they were seen at.
	Tags map[string]string `json:"tags,omitempty"`
	// Branches and the commits they were seen at.
	Branches map[string]string `json:"branches,omitempty"`
	// Rewritten says for the commit that a branch was pushed over to, from which one it came.
	Rewritten map[string]string `json:"rewritten,omitempty"`
	// Recent are the commits that were looked at last, the latest first.
	Recent []string `json:"recent,omitempty"`
	// TagObjects are annotated tags by the commits they name.
	TagObjects map[string]tagNote `json:"tagObjects,omitempty"`
	// Shallow are commits whose parents are not there.
	Shallow []string `json:"shallow,omitempty"`
	// Narrow says that the history is left out, because something in it is too large.
	Narrow bool `json:"narrow,omitempty"`
}

type tagNote struct {
	Name   string `json:"name"`
	Object string `json:"object"`
}

// openGitCache opens the folder of a remote. What is broken, or of another remote, is thrown away:
// it can be fetched again. Only what a tag was seen at is kept as long as it can be read.
func openGitCache(dir, address string) (*gitCache, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	c := &gitCache{dir: dir}
	known := c.readNotes() && c.notes.URL == address
	if !known {
		c.notes = notes{URL: address}
	}
	if err := c.sweep(); err != nil {
		return nil, err
	}
	if known && c.intact() {
		return c, c.openStorage()
	}
	return c, c.reset()
}

func (c *gitCache) readNotes() bool {
	data, err := os.ReadFile(filepath.Join(c.dir, notesFile))
	return err == nil && json.Unmarshal(data, &c.notes) == nil
}

func (c *gitCache) saveNotes() error {
	data, err := json.MarshalIndent(c.notes, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(c.dir, notesFile, bytes.NewReader(data)); err != nil {
		return fmt.Errorf("note what was fetched: %w", err)
	}
	return nil
}

// writeFile puts a file into its place when it is complete.
func writeFile(dir, name string, content io.Reader) error {
	file, err := os.CreateTemp(dir, incoming)
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = io.Copy(file, content)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), filepath.Join(dir, name))
}

// sweep removes what a process that was killed left, and former generations.
func (c *gitCache) sweep() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("read the cache: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, incoming) || strings.HasPrefix(name, "objects-") && name != filepath.Base(c.repository()) {
			if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
				return fmt.Errorf("clean the cache: %w", err)
			}
		}
	}
	return nil
}

func (c *gitCache) repository() string {
	return filepath.Join(c.dir, fmt.Sprintf("objects-%d", c.notes.Generation))
}

func (c *gitCache) packs() string { return filepath.Join(c.repository(), "objects", "pack") }

// intact compares each pack with its checksum.
func (c *gitCache) intact() bool {
	if head, err := os.ReadFile(filepath.Join(c.repository(), "HEAD")); err != nil || len(head) == 0 {
		return false
	}
	packs, err := filepath.Glob(filepath.Join(c.packs(), "*.pack"))
	if err != nil {
		return false
	}
	for _, pack := range packs {
		if checksum(pack) != nil || checksum(strings.TrimSuffix(pack, ".pack")+".idx") != nil {
			return false
		}
	}
	return true
}

// checksum compares a file with the SHA-1 at its end.
func checksum(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() < sha1.Size {
		return errors.Join(err, errors.New("too short"))
	}
	sum := sha1.New()
	if _, err := io.CopyN(sum, file, info.Size()-sha1.Size); err != nil {
		return err
	}
	want, err := io.ReadAll(file)
	if err == nil && !bytes.Equal(want, sum.Sum(nil)) {
		err = errors.New("the checksum is another one")
	}
	return err
}

// reset begins with an empty repository. What tags and branches were seen at is not forgotten.
func (c *gitCache) reset() error {
	former := c.repository()
	c.notes.Generation++
	c.notes.Shallow, c.notes.Recent, c.notes.TagObjects, c.notes.Narrow = nil, nil, nil, false
	if err := makeRepository(c.repository()); err != nil {
		return err
	}
	if err := c.saveNotes(); err != nil {
		return err
	}
	if err := os.RemoveAll(former); err != nil {
		return fmt.Errorf("clean the cache: %w", err)
	}
	return c.openStorage()
}

// makeRepository writes what makes a folder a bare repository.
func makeRepository(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("clean the cache: %w", err)
	}
	for _, folder := range []string{"objects/pack", "refs"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			return fmt.Errorf("make the cache: %w", err)
		}
	}
	for name, content := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("make the cache: %w", err)
		}
	}
	return nil
}

func (c *gitCache) openStorage() error {
	suspect := &atomic.Bool{}
	c.suspect = suspect
	c.unpacked = cache.NewObjectLRU(objectCacheSize)
	c.storage = c.newStorage()
	c.objects = &objects{storer: c.storage, onError: func(error) { suspect.Store(true) },
		advice: fmt.Sprintf("what is kept of %s is damaged, and is fetched anew", c.notes.URL)}
	return nil
}

func (c *gitCache) newStorage() *filesystem.Storage {
	return filesystem.NewStorageWithOptions(osfs.New(c.repository()), c.unpacked, filesystem.Options{KeepDescriptors: true})
}

// refresh looks at the folder again. The mutex of the objects is held.
func (c *gitCache) refresh() {
	_ = c.storage.Close()
	c.storage = c.newStorage()
	c.objects.storer = c.storage
}

// has tells whether an object is there.
func (c *gitCache) has(hash plumbing.Hash) bool {
	return c.objects.has(hash)
}

// looked notes that a commit was of use, so that it stays.
func (n *notes) looked(commit string) {
	recent := []string{commit}
	for _, other := range n.Recent {
		if other != commit && len(recent) < keptCommits {
			recent = append(recent, other)
		}
	}
	n.Recent = recent
}

func remember[V any](notes map[string]V, key string, value V) map[string]V {
	if notes == nil {
		notes = map[string]V{}
	}
	notes[key] = value
	return notes
}
