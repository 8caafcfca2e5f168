package operator

import (
	"context"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source"
)

// connection is the access to a source for as long as the object and its Secrets say the same.
// Closing it ends what it does, and waits for nothing: a server that hangs keeps nobody from naming
// another one.
type connection struct {
	source.Remote
	// id is the part of the object that it was made with, secrets the digest of what was in the
	// Secrets.
	id, secrets string
	// offline says that there is only what the cache holds, because there is no access to the
	// source.
	offline bool

	alive  context.Context
	cancel context.CancelFunc
	// before is closed when the former one is: they share what was fetched.
	before <-chan struct{}
	done   chan struct{}
}

// connect makes the connection that takes the place of a former one, which may be nil.
func connect(ctx context.Context, remote source.Remote, id, secrets string, before <-chan struct{}) *connection {
	c := &connection{Remote: remote, id: id, secrets: secrets, before: before, done: make(chan struct{})}
	c.alive, c.cancel = context.WithCancel(ctx)
	return c
}

// end closes it in the background; done is closed then.
func (c *connection) end() {
	c.cancel()
	go func() {
		defer close(c.done)
		if c.before != nil {
			<-c.before
		}
		_ = c.Remote.Close() // there is nobody left to tell
	}()
}

// during has the source asked with a context that also ends with the connection, once the former
// connection is closed.
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

// former gives a revision that a source had once, under the name of its head.
func (c *connection) former(ctx context.Context, head source.Head) (*source.Snapshot, error) {
	snapshot, err := c.At(ctx, head.Commit)
	if err == nil {
		snapshot.Name = head.Name
	}
	return snapshot, err
}

// sourceSecrets are what is in the Secrets that the source of a Landscape refers to.
type sourceSecrets struct {
	Login, Proxy, Keys map[string][]byte
}

// digest changes with what is in them. It stays in memory.
func (s sourceSecrets) digest() string { return digest(s) }

// ofSource reads the Secrets that the source of a Landscape refers to.
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

// keys reads the Secret with those that signatures are verified with; there is none where no
// signature is demanded.
func (s secrets) keys(ctx context.Context, spec *landscapev1alpha1.Source) (map[string][]byte, error) {
	if spec.Verify == nil {
		return nil, nil
	}
	return s.data(ctx, &spec.Verify.SecretRef, "spec.source.verify.secretRef")
}
