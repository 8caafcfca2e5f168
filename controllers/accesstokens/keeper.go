package accesstokens

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

type Site struct {
	// Namespace contains the Secrets, on the cluster of Local; Target is the API server with the
	// ServiceAccounts.
	Namespace     string
	Local, Target *rest.Config
	// Manager is the Deployment of the resource manager, which requests the tokens where it runs.
	Manager string
}

// Keeper requests tokens for control planes, each from Keep until Stop or Close. The zero value is
// ready to use.
type Keeper struct {
	Clock clock.WithTicker
	Log   *slog.Logger

	mu     sync.Mutex
	closed bool
	sites  map[string]*working
}

// working is a control plane for which a goroutine runs.
type working struct {
	Site
	wake   chan struct{}
	cancel context.CancelFunc
	done   chan struct{}
}

// Keep requests tokens for a control plane from now on. If it already does and waits for the API
// server, it retries at once. A Site with other access replaces the previous one.
func (k *Keeper) Keep(s Site) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	former := k.sites[s.Namespace]
	if former != nil && former.same(s) {
		select {
		case former.wake <- struct{}{}:
		default:
		}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	next := &working{Site: s, wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	if k.sites == nil {
		k.sites = map[string]*working{}
	}
	k.sites[s.Namespace] = next
	go func() {
		defer close(next.done)
		if former != nil {
			former.stop()
		}
		k.work(ctx, next)
	}()
}

// same reports whether two sites have the same access. Transports are compared by identity, because
// they know the access; a nil one means fixed access.
func (w *working) same(s Site) bool {
	return w.Manager == s.Manager && sameAccess(w.Local, s.Local) && sameAccess(w.Target, s.Target)
}

func sameAccess(a, b *rest.Config) bool {
	return a.Host == b.Host && a.Transport == b.Transport && a.Impersonate.UserName == b.Impersonate.UserName &&
		string(a.CertData) == string(b.CertData) && string(a.CAData) == string(b.CAData) && a.BearerToken == b.BearerToken
}

func (w *working) stop() {
	w.cancel()
	<-w.done
}

// Stop ends the work for a control plane, and waits for the end.
func (k *Keeper) Stop(namespace string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	w := k.sites[namespace]
	delete(k.sites, namespace)
	k.mu.Unlock()
	if w != nil {
		w.stop()
	}
}

// Close ends all work; later calls of Keep do nothing.
func (k *Keeper) Close() {
	if k == nil {
		return
	}
	k.mu.Lock()
	all := k.sites
	k.sites, k.closed = nil, true
	k.mu.Unlock()
	for _, w := range all {
		w.cancel()
	}
	for _, w := range all {
		<-w.done
	}
}

const (
	// firstLook and lastLook bound the pause between two attempts while the API server does not
	// answer.
	firstLook, lastLook = time.Second, 15 * time.Second
	// look is the interval at which the controller checks for a resource manager and new CAs.
	look = 30 * time.Second
)

// work runs the controller whenever it is needed, until ctx ends.
func (k *Keeper) work(ctx context.Context, w *working) {
	pause := firstLook
	for ctx.Err() == nil {
		switch ours, err := w.isOurs(ctx); {
		case err != nil:
			k.log().Debug("tokens cannot be requested yet", "namespace", w.Namespace, "error", err)
		case !ours:
			pause = lastLook
		default:
			pause = firstLook
			if err := k.request(ctx, w); err != nil && ctx.Err() == nil {
				k.log().Warn("requesting tokens has ended, and begins again", "namespace", w.Namespace, "error", err)
			}
		}
		if !k.wait(ctx, w, pause) {
			pause = min(2*pause, lastLook)
		} else {
			pause = firstLook
		}
	}
}

// wait waits for d, and reports whether Keep interrupted it.
func (k *Keeper) wait(ctx context.Context, w *working, d time.Duration) bool {
	timer := k.clock().NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.wake:
		return true
	case <-ctx.Done():
	case <-timer.C():
	}
	return false
}

func (k *Keeper) clock() clock.WithTicker {
	if k.Clock == nil {
		return clock.RealClock{}
	}
	return k.Clock
}

func (k *Keeper) log() *slog.Logger {
	if k.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return k.Log
}
