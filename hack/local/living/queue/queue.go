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

// A failure is tried again soon at first, and at least every few seconds: everything is on this
// machine.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// Do brings what a key names up to date. It is called again after the time that it returns, if that
// is not zero, and after a failure.
type Do func(ctx context.Context, key string) (again time.Duration, err error)

// Queue holds the keys that are to be worked off.
type Queue struct {
	do    Do
	log   *slog.Logger
	queue workqueue.TypedRateLimitingInterface[string]
}

// New makes a queue; Run works it off.
func New(clock clock.WithTicker, log *slog.Logger, do Do) *Queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)
	return &Queue{do: do, log: log, queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[string]{Clock: clock})}
}

// Add has a key worked off. One that waits already is there once.
func (q *Queue) Add(key string) { q.queue.Add(key) }

// AddObject adds an object of an informer, also one that is gone.
func (q *Queue) AddObject(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		q.queue.Add(key)
	}
}

// Handler adds every object that an informer tells of.
func (q *Queue) Handler() cache.ResourceEventHandler { return Each(q.AddObject) }

// Each calls the function with every object that an informer tells of, as it is now, or was last.
func Each(do func(object any)) cache.ResourceEventHandler {
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

// Run works keys off until the context ends, and what it is at by then.
func (q *Queue) Run(ctx context.Context) {
	stop := context.AfterFunc(ctx, q.queue.ShutDown)
	defer stop()
	defer q.queue.ShutDown()
	for {
		key, end := q.queue.Get()
		if end {
			return
		}
		q.work(ctx, key)
	}
}

func (q *Queue) work(ctx context.Context, key string) {
	defer q.queue.Done(key)
	again, err := q.once(ctx, key)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		// A conflict only says that somebody else was faster.
		if !errors.IsConflict(err) {
			q.log.Warn("Failed, will be tried again", "object", key, "error", err)
		}
		q.queue.AddRateLimited(key)
	default:
		q.queue.Forget(key)
		if again > 0 {
			q.queue.AddAfter(key, again)
		}
	}
}

// once makes a panic an error: one odd object does not end the others' controllers.
func (q *Queue) once(ctx context.Context, key string) (again time.Duration, err error) {
	defer func() {
		if trouble := recover(); trouble != nil {
			err = fmt.Errorf("panic: %v", trouble)
		}
	}()
	return q.do(ctx, key)
}
