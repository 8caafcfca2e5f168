// SPDX-License-Identifier: Apache-2.0

// Package writeprobe is a client that writes to an API server ten times a second, for tests and the
// demonstration of rotations. It reconnects as any client does, and counts other failures.
package writeprobe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// writeInterval is the time between two writes.
	writeInterval = 100 * time.Millisecond
	// maxAttempts limits the attempts of one write while the connection is lost.
	maxAttempts = 20
)

// Probe creates ConfigMaps by the access that it has.
type Probe struct {
	mu     sync.Mutex
	api    kubernetes.Interface
	counts Counts
	cancel context.CancelFunc
	done   chan struct{}
}

// Counts are the results of the writes.
type Counts struct {
	Written, LostConnections int
	// Slowest is how long the slowest successful write took: an API server waits for an etcd that
	// restarts.
	Slowest time.Duration
	// Failed counts error answers, and connections that could not be made in two seconds.
	Failed map[string]int
}

// Start starts to create ConfigMaps in a namespace.
func Start(ctx context.Context, api kubernetes.Interface, namespace string) *Probe {
	ctx, cancel := context.WithCancel(ctx)
	w := &Probe{api: api, counts: Counts{Failed: map[string]int{}}, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(writeInterval)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			w.write(ctx, namespace, n)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return w
}

func (w *Probe) write(ctx context.Context, namespace string, n int) {
	var err error
	lost, began := 0, time.Now()
	for range maxAttempts {
		w.mu.Lock()
		api := w.api
		w.mu.Unlock()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "written-"}, Data: map[string]string{"n": fmt.Sprint(n)}}
		if _, err = api.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{}); !isConnectionLost(err) {
			break
		}
		lost++
		select {
		case <-time.After(writeInterval):
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts.LostConnections += lost
	switch {
	case err == nil:
		w.counts.Written++
		w.counts.Slowest = max(w.counts.Slowest, time.Since(began))
	case ctx.Err() == nil:
		w.counts.Failed[err.Error()]++
	}
}

// isConnectionLost reports whether a connection was lost or not made: there was no answer.
func isConnectionLost(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.As(err, new(*net.OpError)) || err != nil && (strings.Contains(err.Error(), "Bad Gateway") || strings.Contains(err.Error(), "http2: client connection"))
}

// UseClient replaces the access.
func (w *Probe) UseClient(to kubernetes.Interface) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.api = to
}

// Counts returns the results until now.
func (w *Probe) Counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.counts
	out.Failed = maps.Clone(out.Failed)
	return out
}

// Stop ends the writes and returns the results.
func (w *Probe) Stop() Counts {
	w.cancel()
	<-w.done
	return w.Counts()
}
