package source

import (
	"bytes"
	"crypto/sha1" // the checksum of Git's packs
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
	// incoming is the name prefix of incomplete files.
	incoming = "incoming-"
	// objectCacheSize bounds the unpacked objects in memory.
	objectCacheSize = 8 * cache.MiByte
	// maxPacks is how many fetches a generation of the cache holds before it is rewritten.
	maxPacks = 48
	// keptCommits is how many recently used commits stay in the cache.
	keptCommits = 32
)

// gitCache stores the fetched objects of one remote:
//
//	remote.json      metadata: the URL, tags, branches, recently used commits
//	objects-<n>      a bare repository of packs; a later n after it was rewritten
//	incoming-*       a transfer in progress
type gitCache struct {
	dir     string
	notes   notes
	storage *filesystem.Storage
	objects *objects
	// unpacked are recently read objects.
	unpacked cache.Object
	// suspect is set when an object that should exist could not be read.
	suspect *atomic.Bool
}

// notes are the metadata of a remote.
type notes struct {
	URL        string `json:"url"`
	Generation int    `json:"generation"`
	// Tags and the commits they pointed to when last seen.
	Tags map[string]string `json:"tags,omitempty"`
	// Branches and the commits they pointed to when last seen.
	Branches map[string]string `json:"branches,omitempty"`
	// Rewritten maps the new commit of a force-pushed branch to the previous one.
	Rewritten map[string]string `json:"rewritten,omitempty"`
	// Recent are the recently used commits, the latest first.
	Recent []string `json:"recent,omitempty"`
	// TagObjects are annotated tags by the commits that they name.
	TagObjects map[string]tagNote `json:"tagObjects,omitempty"`
	// Shallow are commits whose parents are missing.
	Shallow []string `json:"shallow,omitempty"`
	// Narrow says that the history is omitted, because something in it is too large.
	Narrow bool `json:"narrow,omitempty"`
}

type tagNote struct {
	Name   string `json:"name"`
	Object string `json:"object"`
}

// openGitCache opens the folder of a remote. It discards a cache that is damaged or belongs to
// another remote, because it can be fetched again. The recorded commits of this remote's tags and
// branches are retained.
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

// writeFile writes a temporary file and renames it when it is complete.
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

// sweep removes files of killed processes, and earlier generations.
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

// reset starts with an empty repository. It retains the recorded commits of tags and branches.
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

// makeRepository turns a folder into an empty bare repository.
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

// refresh reopens the folder. The caller holds the mutex of the objects.
func (c *gitCache) refresh() {
	_ = c.storage.Close()
	c.storage = c.newStorage()
	c.objects.storer = c.storage
}

// has reports whether an object exists.
func (c *gitCache) has(hash plumbing.Hash) bool {
	return c.objects.has(hash)
}

// looked records the use of a commit, so that it stays in the cache.
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
