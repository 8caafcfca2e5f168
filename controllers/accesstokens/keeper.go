package accesstokens

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// Site is a control plane.
type Site struct {
	// Namespace has the Secrets, on the cluster of Local; Target is the API server with the
	// ServiceAccounts.
	Namespace     string
	Local, Target *rest.Config
	// Manager is the Deployment that does the work where there is one.
	Manager string
}

// Keeper works for control planes, each from Keep until Stop or Close. The zero value is of use.
type Keeper struct {
	Clock clock.WithTicker
	Log   *slog.Logger

	mu     sync.Mutex
	closed bool
	sites  map[string]*working
}

// working is a site that is worked for.
type working struct {
	Site
	wake   chan struct{}
	cancel context.CancelFunc
	done   chan struct{}
}

// Keep works for a control plane from now on, and looks soon where it waits for its API server. One
// of another access takes the place of the former one.
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

// same tells whether a site is reached as another one is. Transports are compared, since they know
// how; a nil one is that of a fixed access.
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

// Stop ends the work for a control plane.
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

// Close ends all work; nothing begins any more.
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
	// firstLook and lastLook bound the pauses between two looks at an API server that does not
	// answer yet.
	firstLook, lastLook = time.Second, 15 * time.Second
	// look is how often it is looked who does the work.
	look = 30 * time.Second
)

// work waits until there is work to do, and does it, until ctx ends.
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

// wait waits, and tells whether somebody has woken it.
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
