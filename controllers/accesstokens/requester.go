// SPDX-License-Identifier: Apache-2.0

package accesstokens

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

type ControlPlane struct {
	// Namespace contains the Secrets, on the cluster of Local; Target is the API server with the
	// ServiceAccounts.
	Namespace     string
	Local, Target *rest.Config
	// ResourceManager is the Deployment of the resource manager, which requests the tokens where it
	// runs.
	ResourceManager string
}

// Requester requests tokens for control planes, each from Keep until Stop or Close. The zero value
// is ready to use.
type Requester struct {
	Clock clock.WithTicker
	Log   *slog.Logger

	mu      sync.Mutex
	closed  bool
	workers map[string]*controlPlaneWorker
}

// controlPlaneWorker is a control plane for which a goroutine runs.
type controlPlaneWorker struct {
	ControlPlane
	wake   chan struct{}
	cancel context.CancelFunc
	done   chan struct{}
}

// Start requests tokens for a control plane from now on. If it already does and waits for the API
// server, it retries at once. A Site with other access replaces the previous one.
func (k *Requester) Start(s ControlPlane) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	former := k.workers[s.Namespace]
	if former != nil && former.hasSameAccess(s) {
		select {
		case former.wake <- struct{}{}:
		default:
		}
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	next := &controlPlaneWorker{ControlPlane: s, wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	if k.workers == nil {
		k.workers = map[string]*controlPlaneWorker{}
	}
	k.workers[s.Namespace] = next
	go func() {
		defer close(next.done)
		if former != nil {
			former.stop()
		}
		k.runWorker(ctx, next)
	}()
}

// hasSameAccess reports whether two sites have the same access. Transports are compared by
// identity, because they know the access; a nil one means fixed access.
func (w *controlPlaneWorker) hasSameAccess(s ControlPlane) bool {
	return w.ResourceManager == s.ResourceManager && isSameAccess(w.Local, s.Local) && isSameAccess(w.Target, s.Target)
}

func isSameAccess(a, b *rest.Config) bool {
	return a.Host == b.Host && a.Transport == b.Transport && a.BearerToken == b.BearerToken && a.BearerTokenFile == b.BearerTokenFile &&
		reflect.DeepEqual(a.Impersonate, b.Impersonate) && reflect.DeepEqual(a.TLSClientConfig, b.TLSClientConfig)
}

func (w *controlPlaneWorker) stop() {
	w.cancel()
	<-w.done
}

// Stop ends the work for a control plane, and waits for the end.
func (k *Requester) Stop(namespace string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	w := k.workers[namespace]
	delete(k.workers, namespace)
	k.mu.Unlock()
	if w != nil {
		w.stop()
	}
}

// Close ends all work; later calls of Keep do nothing.
func (k *Requester) Close() {
	if k == nil {
		return
	}
	k.mu.Lock()
	all := k.workers
	k.workers, k.closed = nil, true
	k.mu.Unlock()
	for _, w := range all {
		w.cancel()
	}
	for _, w := range all {
		<-w.done
	}
}

const (
	// minRetryPause and maxRetryPause bound the pause between two attempts while the API server
	// does not answer.
	minRetryPause, maxRetryPause = time.Second, 15 * time.Second
	// takeoverCheckInterval is the interval at which the controller checks for a resource manager
	// and new CAs.
	takeoverCheckInterval = 30 * time.Second
)

// runWorker runs the controller whenever it is needed, until ctx ends.
func (k *Requester) runWorker(ctx context.Context, w *controlPlaneWorker) {
	pause := minRetryPause
	for ctx.Err() == nil {
		switch ours, err := w.isResponsible(ctx); {
		case err != nil:
			k.log().Debug("tokens cannot be requested yet", "namespace", w.Namespace, "error", err)
		case !ours:
			pause = maxRetryPause
		default:
			pause = minRetryPause
			if err := k.runController(ctx, w); err != nil && ctx.Err() == nil {
				k.log().Warn("the token requests stopped; restarting them", "namespace", w.Namespace, "error", err)
			}
		}
		if !k.waitForWake(ctx, w, pause) {
			pause = min(2*pause, maxRetryPause)
		} else {
			pause = minRetryPause
		}
	}
}

// waitForWake waits for d, and reports whether Keep interrupted it.
func (k *Requester) waitForWake(ctx context.Context, w *controlPlaneWorker, d time.Duration) bool {
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

func (k *Requester) clock() clock.WithTicker {
	if k.Clock == nil {
		return clock.RealClock{}
	}
	return k.Clock
}

func (k *Requester) log() *slog.Logger {
	if k.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return k.Log
}
