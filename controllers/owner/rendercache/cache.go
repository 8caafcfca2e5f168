// SPDX-License-Identifier: Apache-2.0

package rendercache

import (
	"slices"
	"sync"

	"github.com/pergola-dev/pergola/render"
)

// Cache caches the last rendering of each owner, so that a revision without changes for an owner
// costs no render. All users of one cache must render with the same catalogue. It is safe for
// concurrent use; nil caches nothing.
type Cache struct {
	mu      sync.Mutex
	byOwner map[string]cacheEntry
}

// cacheEntry is a cached rendering and the digest of its input.
type cacheEntry struct {
	input  render.InputDigest
	result render.Result
}

// Render returns the cached rendering of the same input, or renders. Errors are not cached.
func (k *Cache) Render(in render.Input, options render.Options) (render.Result, error) {
	if k == nil {
		return render.Render(in, options)
	}
	digest, err := render.DigestInput(in, options)
	if err != nil {
		return render.Result{}, err
	}
	name := in.Owner.String()
	k.mu.Lock()
	last, ok := k.byOwner[name]
	k.mu.Unlock()
	if ok && last.input == digest {
		return last.cloneResult(), nil
	}
	result, err := render.Render(in, options)
	if err != nil {
		return result, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byOwner == nil {
		k.byOwner = map[string]cacheEntry{}
	}
	kept := cacheEntry{digest, result}
	k.byOwner[name] = kept
	return kept.cloneResult(), nil
}

// cloneResult clones the list of bundles: a reconciliation replaces bundles in it.
func (r cacheEntry) cloneResult() render.Result {
	out := r.result
	out.Bundles = slices.Clone(out.Bundles)
	return out
}
