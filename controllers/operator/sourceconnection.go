// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source"
)

// sourceConnection is the access to a source until the object or its Secrets change. Closing it
// cancels its requests and does not wait, so that a hanging server does not block its replacement.
type sourceConnection struct {
	source.Remote
	// id identifies the part of the object that the connection uses. secrets is the digest of the
	// Secret data.
	id, secretsDigest string
	// isOffline means that only the cache is available, because there is no access to the source.
	isOffline bool

	ctx    context.Context
	cancel context.CancelFunc
	// previousClosed is closed with the previous connection, which shares the cache of fetched
	// data.
	previousClosed <-chan struct{}
	closed         chan struct{}
}

// newSourceConnection creates the connection that replaces a previous one, if any.
func newSourceConnection(ctx context.Context, remote source.Remote, id, secrets string, before <-chan struct{}) *sourceConnection {
	c := &sourceConnection{Remote: remote, id: id, secretsDigest: secrets, previousClosed: before, closed: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c
}

// closeInBackground closes the connection in the background, and then closes done.
func (c *sourceConnection) closeInBackground() {
	c.cancel()
	go func() {
		defer close(c.closed)
		if c.previousClosed != nil {
			<-c.previousClosed
		}
		_ = c.Remote.Close() // there is no one to report to
	}()
}

// whileConnected runs work once the previous connection is closed. Its context also ends with the
// connection.
func whileConnected[T any](ctx context.Context, c *sourceConnection, work func(context.Context) (T, error)) (none T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	if c.previousClosed != nil {
		select {
		case <-c.previousClosed:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	return work(ctx)
}

// Resolve implements source.Remote.
func (c *sourceConnection) Resolve(ctx context.Context) (source.Head, error) {
	return whileConnected(ctx, c, c.Remote.Resolve)
}

// Fetch implements source.Remote.
func (c *sourceConnection) Fetch(ctx context.Context, head source.Head) (*source.Snapshot, error) {
	return whileConnected(ctx, c, func(ctx context.Context) (*source.Snapshot, error) { return c.Remote.Fetch(ctx, head) })
}

// At implements source.Remote.
func (c *sourceConnection) At(ctx context.Context, commit string) (*source.Snapshot, error) {
	return whileConnected(ctx, c, func(ctx context.Context) (*source.Snapshot, error) { return c.Remote.At(ctx, commit) })
}

// fetchCommit fetches an earlier revision under the name of its head.
func (c *sourceConnection) fetchCommit(ctx context.Context, head source.Head) (*source.Snapshot, error) {
	snapshot, err := c.At(ctx, head.Commit)
	if err == nil {
		snapshot.Name = head.Name
	}
	return snapshot, err
}

// sourceSecrets are the data of the Secrets that a Landscape's source refers to.
type sourceSecrets struct {
	Login, Proxy, Keys map[string][]byte
}

// digest changes with the data. It stays in memory.
func (s sourceSecrets) digest() string { return jsonDigest(s) }

// readSourceSecrets reads the Secrets that a Landscape's source refers to.
func (s secretReader) readSourceSecrets(ctx context.Context, spec *landscapev1alpha1.Source) (out sourceSecrets, err error) {
	if out.Login, err = s.dataOf(ctx, spec.SecretRef, "spec.source.secretRef"); err != nil {
		return out, err
	}
	if out.Proxy, err = s.dataOf(ctx, spec.ProxySecretRef, "spec.source.proxySecretRef"); err != nil {
		return out, err
	}
	out.Keys, err = s.verificationKeys(ctx, spec)
	return out, err
}

// verificationKeys reads the Secret with the verification keys, or nil if no signature is required.
func (s secretReader) verificationKeys(ctx context.Context, spec *landscapev1alpha1.Source) (map[string][]byte, error) {
	if spec.Verify == nil {
		return nil, nil
	}
	return s.dataOf(ctx, &spec.Verify.SecretRef, "spec.source.verify.secretRef")
}
