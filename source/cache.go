// SPDX-License-Identifier: Apache-2.0

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
	metadataFile = "remote.json"
	// incomingPrefix is the name prefix of incomplete files.
	incomingPrefix = "incoming-"
	// objectCacheSize bounds the unpacked objects in memory.
	objectCacheSize = 8 * cache.MiByte
	// maxPacks is how many fetches a generation of the cache holds before it is rewritten.
	maxPacks = 48
	// maxRecentCommits is how many recently used commits stay in the cache.
	maxRecentCommits = 32
)

// gitCache stores the fetched objects of one remote:
//
//	remote.json      metadata: the URL, tags, branches, recently used commits
//	objects-<n>      a bare repository of packs; a later n after it was rewritten
//	incoming-*       a transfer in progress
type gitCache struct {
	dir      string
	metadata cacheMetadata
	storage  *filesystem.Storage
	objects  *objectReader
	// objectCache has recently read objects.
	objectCache cache.Object
	// needsReset is set when an object that should exist could not be read.
	needsReset *atomic.Bool
}

// cacheMetadata has the metadata of a remote.
type cacheMetadata struct {
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
	TagObjects map[string]tagRecord `json:"tagObjects,omitempty"`
	// Shallow are commits whose parents are missing.
	Shallow []string `json:"shallow,omitempty"`
	// WithoutHistory says that the history is omitted, because something in it is too large.
	WithoutHistory bool `json:"narrow,omitempty"`
}

type tagRecord struct {
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
	known := c.readMetadata() && c.metadata.URL == address
	if !known {
		c.metadata = cacheMetadata{URL: address}
	}
	if err := c.removeStaleFiles(); err != nil {
		return nil, err
	}
	if known && c.isIntact() {
		return c, c.openStorage()
	}
	return c, c.reset()
}

func (c *gitCache) readMetadata() bool {
	data, err := os.ReadFile(filepath.Join(c.dir, metadataFile))
	return err == nil && json.Unmarshal(data, &c.metadata) == nil
}

func (c *gitCache) saveMetadata() error {
	data, err := json.MarshalIndent(c.metadata, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(c.dir, metadataFile, bytes.NewReader(data)); err != nil {
		return fmt.Errorf("record the fetched revision: %w", err)
	}
	return nil
}

// writeFile writes a temporary file and renames it when it is complete.
func writeFile(dir, name string, content io.Reader) error {
	file, err := os.CreateTemp(dir, incomingPrefix)
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

// removeStaleFiles removes files of killed processes, and earlier generations.
func (c *gitCache) removeStaleFiles() error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("read the cache: %w", err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, incomingPrefix) || strings.HasPrefix(name, "objects-") && name != filepath.Base(c.repositoryDir()) {
			if err := os.RemoveAll(filepath.Join(c.dir, name)); err != nil {
				return fmt.Errorf("clean the cache: %w", err)
			}
		}
	}
	return nil
}

func (c *gitCache) repositoryDir() string {
	return filepath.Join(c.dir, fmt.Sprintf("objects-%d", c.metadata.Generation))
}

func (c *gitCache) packsDir() string { return filepath.Join(c.repositoryDir(), "objects", "pack") }

// isIntact compares each pack with its checksum.
func (c *gitCache) isIntact() bool {
	if head, err := os.ReadFile(filepath.Join(c.repositoryDir(), "HEAD")); err != nil || len(head) == 0 {
		return false
	}
	packs, err := filepath.Glob(filepath.Join(c.packsDir(), "*.pack"))
	if err != nil {
		return false
	}
	for _, pack := range packs {
		if verifyChecksum(pack) != nil || verifyChecksum(strings.TrimSuffix(pack, ".pack")+".idx") != nil {
			return false
		}
	}
	return true
}

// verifyChecksum compares a file with the SHA-1 at its end.
func verifyChecksum(name string) error {
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
		err = errors.New("the checksum differs")
	}
	return err
}

// reset starts with an empty repository. It retains the recorded commits of tags and branches.
func (c *gitCache) reset() error {
	former := c.repositoryDir()
	c.metadata.Generation++
	c.metadata.Shallow, c.metadata.Recent, c.metadata.TagObjects, c.metadata.WithoutHistory = nil, nil, nil, false
	if err := createBareRepository(c.repositoryDir()); err != nil {
		return err
	}
	if err := c.saveMetadata(); err != nil {
		return err
	}
	if err := os.RemoveAll(former); err != nil {
		return fmt.Errorf("clean the cache: %w", err)
	}
	return c.openStorage()
}

// createBareRepository turns a folder into an empty bare repository.
func createBareRepository(dir string) error {
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
	c.needsReset = suspect
	c.objectCache = cache.NewObjectLRU(objectCacheSize)
	c.storage = c.newStorage()
	c.objects = &objectReader{storer: c.storage, onError: func(error) { suspect.Store(true) },
		advice: fmt.Sprintf("the cache of %s is damaged, and is fetched again", c.metadata.URL)}
	return nil
}

func (c *gitCache) newStorage() *filesystem.Storage {
	return filesystem.NewStorageWithOptions(osfs.New(c.repositoryDir()), c.objectCache, filesystem.Options{KeepDescriptors: true})
}

// reopenStorage reopens the folder. The caller holds the mutex of the objects.
func (c *gitCache) reopenStorage() {
	_ = c.storage.Close()
	c.storage = c.newStorage()
	c.objects.storer = c.storage
}

// hasObject reports whether an object exists.
func (c *gitCache) hasObject(hash plumbing.Hash) bool {
	return c.objects.hasObject(hash)
}

// markRecent records the use of a commit, so that it stays in the cache.
func (n *cacheMetadata) markRecent(commit string) {
	recent := []string{commit}
	for _, other := range n.Recent {
		if other != commit && len(recent) < maxRecentCommits {
			recent = append(recent, other)
		}
	}
	n.Recent = recent
}

func withEntry[V any](notes map[string]V, key string, value V) map[string]V {
	if notes == nil {
		notes = map[string]V{}
	}
	notes[key] = value
	return notes
}
