package operator

import (
	"context"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source"
)

// connection is the access to a source until the object or its Secrets change. Closing it cancels
// its requests and does not wait, so that a hanging server does not block its replacement.
type connection struct {
	source.Remote
	// id identifies the part of the object that the connection uses. secrets is the digest of the
	// Secret data.
	id, secrets string
	// offline means that only the cache is available, because there is no access to the source.
	offline bool

	alive  context.Context
	cancel context.CancelFunc
	// before is closed with the previous connection, which shares the cache of fetched data.
	before <-chan struct{}
	done   chan struct{}
}

// connect creates the connection that replaces a previous one, if any.
func connect(ctx context.Context, remote source.Remote, id, secrets string, before <-chan struct{}) *connection {
	c := &connection{Remote: remote, id: id, secrets: secrets, before: before, done: make(chan struct{})}
	c.alive, c.cancel = context.WithCancel(ctx)
	return c
}

// end closes the connection in the background, and then closes done.
func (c *connection) end() {
	c.cancel()
	go func() {
		defer close(c.done)
		if c.before != nil {
			<-c.before
		}
		_ = c.Remote.Close() // there is nobody to report to
	}()
}

// during runs work once the previous connection is closed. Its context also ends with the
// connection.
func during[T any](ctx context.Context, c *connection, work func(context.Context) (T, error)) (none T, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.alive, cancel)()
	if c.before != nil {
		select {
		case <-c.before:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	return work(ctx)
}

// Resolve implements source.Remote.
func (c *connection) Resolve(ctx context.Context) (source.Head, error) {
	return during(ctx, c, c.Remote.Resolve)
}

// Fetch implements source.Remote.
func (c *connection) Fetch(ctx context.Context, head source.Head) (*source.Snapshot, error) {
	return during(ctx, c, func(ctx context.Context) (*source.Snapshot, error) { return c.Remote.Fetch(ctx, head) })
}

// At implements source.Remote.
func (c *connection) At(ctx context.Context, commit string) (*source.Snapshot, error) {
	return during(ctx, c, func(ctx context.Context) (*source.Snapshot, error) { return c.Remote.At(ctx, commit) })
}

// former fetches an earlier revision under the name of its head.
func (c *connection) former(ctx context.Context, head source.Head) (*source.Snapshot, error) {
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
func (s sourceSecrets) digest() string { return digest(s) }

// ofSource reads the Secrets that a Landscape's source refers to.
func (s secrets) ofSource(ctx context.Context, spec *landscapev1alpha1.Source) (out sourceSecrets, err error) {
	if out.Login, err = s.data(ctx, spec.SecretRef, "spec.source.secretRef"); err != nil {
		return out, err
	}
	if out.Proxy, err = s.data(ctx, spec.ProxySecretRef, "spec.source.proxySecretRef"); err != nil {
		return out, err
	}
	out.Keys, err = s.keys(ctx, spec)
	return out, err
}

// keys reads the Secret with the verification keys; nil if no signature is required.
func (s secrets) keys(ctx context.Context, spec *landscapev1alpha1.Source) (map[string][]byte, error) {
	if spec.Verify == nil {
		return nil, nil
	}
	return s.data(ctx, &spec.Verify.SecretRef, "spec.source.verify.secretRef")
}
