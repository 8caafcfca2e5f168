// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// maxSmallPack is the size below which packs are merged. Merging holds them in memory, at most
// maxPacks times maxSmallPack.
const maxSmallPack = mebibyte

// compact bounds the growth of the cache: it merges many small packs into one. A cache far above
// the transfer limit is discarded with the next fetch.
func (c *gitCache) compact(ctx context.Context, limits Limits) error {
	packs, err := filepath.Glob(filepath.Join(c.packsDir(), "*.pack"))
	if err != nil || len(packs) <= maxPacks {
		return err
	}
	var small []string
	var total int64
	for _, name := range packs {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("read the cache: %w", err)
		}
		total += info.Size()
		if info.Size() < maxSmallPack {
			small = append(small, strings.TrimSuffix(name, ".pack"))
		}
	}
	if total > 4*limits.Transferred || len(small) < 2 {
		c.needsReset.Store(true)
		return nil
	}
	return c.mergePacks(ctx, small)
}

// mergePacks writes the objects of several packs into one.
func (c *gitCache) mergePacks(ctx context.Context, packs []string) error {
	var all []plumbing.Hash
	seen := map[plumbing.Hash]bool{}
	for _, name := range packs {
		hashes, err := readIndexHashes(name + ".idx")
		if err != nil {
			return fmt.Errorf("merge packs of the cache: %w", err)
		}
		for _, hash := range hashes {
			if !seen[hash] {
				seen[hash] = true
				all = append(all, hash)
			}
		}
	}
	file, err := os.CreateTemp(c.dir, incomingPrefix)
	if err != nil {
		return fmt.Errorf("merge packs of the cache: %w", err)
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	if err := c.objects.withStore(func() error {
		_, err := packfile.NewEncoder(file, c.storage, false).Encode(all, 0)
		return err
	}); err != nil {
		return fmt.Errorf("merge packs of the cache: %w", err)
	}
	if err := c.indexPack(ctx, file); err != nil {
		return err
	}
	c.objects.mutex.Lock()
	defer c.objects.mutex.Unlock()
	for _, name := range packs {
		// Remove the index first: a pack without one is ignored.
		for _, ending := range []string{".idx", ".pack"} {
			if err := os.Remove(name + ending); err != nil {
				return fmt.Errorf("merge packs of the cache: %w", err)
			}
		}
	}
	c.reopenStorage()
	return nil
}

func readIndexHashes(index string) ([]plumbing.Hash, error) {
	file, err := os.Open(index)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoded := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(file).Decode(decoded); err != nil {
		return nil, err
	}
	entries, err := decoded.Entries()
	if err != nil {
		return nil, err
	}
	defer entries.Close()
	var out []plumbing.Hash
	for {
		entry, err := entries.Next()
		if err != nil {
			// The end.
			return out, nil // the iterator has no other error: everything is in memory
		}
		out = append(out, entry.Hash)
	}
}
