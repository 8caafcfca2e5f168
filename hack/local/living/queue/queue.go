// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// The delay of retries starts short and is limited: all servers are on this machine.
const (
	minRetryDelay = 50 * time.Millisecond
	maxRetryDelay = 10 * time.Second
)

// Reconcile reconciles the object of a key. It is called again after the duration that it returns,
// unless zero, and after an error.
type Reconcile func(ctx context.Context, key string) (again time.Duration, err error)

// Queue holds the keys to process.
type Queue struct {
	reconcile Reconcile
	log       *slog.Logger
	queue     workqueue.TypedRateLimitingInterface[string]
}

// New returns a Queue; Run processes it.
func New(clock clock.WithTicker, log *slog.Logger, do Reconcile) *Queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetryDelay, maxRetryDelay)
	return &Queue{reconcile: do, log: log, queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[string]{Clock: clock})}
}

// Add adds a key unless it is already waiting.
func (q *Queue) Add(key string) { q.queue.Add(key) }

// AddObject adds the key of an informer's object, even a deleted one.
func (q *Queue) AddObject(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		q.queue.Add(key)
	}
}

// Handler returns an event handler that adds the object of every event.
func (q *Queue) Handler() cache.ResourceEventHandler { return ObjectHandler(q.AddObject) }

// ObjectHandler returns an event handler that calls do with an event's object, current or last.
func ObjectHandler(do func(object any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    do,
		UpdateFunc: func(_, now any) { do(now) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			do(object)
		},
	}
}

// Run processes keys until the context ends, and finishes the current one.
func (q *Queue) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, q.queue.ShutDown)
	defer stop()
	defer q.queue.ShutDown()
	for {
		key, end := q.queue.Get()
		if end {
			return
		}
		q.process(ctx, key)
	}
}

func (q *Queue) process(ctx context.Context, key string) {
	defer q.queue.Done(key)
	again, err := q.reconcileSafely(ctx, key)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		// After a conflict the retry reads the object again.
		if !errors.IsConflict(err) {
			q.log.Warn("Failed, retrying", "object", key, "error", err)
		}
		q.queue.AddRateLimited(key)
	default:
		q.queue.Forget(key)
		if again > 0 {
			q.queue.AddAfter(key, again)
		}
	}
}

// reconcileSafely converts a panic to an error: a malformed object must not stop the controllers.
func (q *Queue) reconcileSafely(ctx context.Context, key string) (again time.Duration, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			err = fmt.Errorf("panic: %v", trouble)
		}
	}()
	return q.reconcile(ctx, key)
}
