// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net/url"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// offlineWire is the wire of a remote that makes no connection.
type offlineWire struct{ location *url.URL }

func (w offlineWire) references(context.Context) (*packp.AdvRefs, error) {
	return nil, notCachedError(w.location.Redacted())
}

func (w offlineWire) pack(context.Context, *packp.UploadPackRequest) (*pack, error) {
	return nil, notCachedError(w.location.Redacted())
}

func (offlineWire) close() error { return nil }

// isCacheOf reports whether a folder is the cache of a remote: opening it for another one would
// discard it.
func isCacheOf(dir, address string) bool {
	c := &gitCache{dir: dir}
	return c.readMetadata() && c.metadata.URL == address
}

// notCachedError returns the error about objects that would have to be fetched.
func notCachedError(where string) error {
	return newError(ReasonUnreachable, "the cache of %s does not hold it, or not all of it", where)
}
