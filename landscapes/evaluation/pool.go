// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Limits are the limits of one worker process.
type Limits struct {
	// Timeout is the longest time for one package; the default is 30 seconds.
	Timeout time.Duration `json:"timeout"`
	// Memory is the largest memory of a worker, in bytes; the default is 2 GiB. Not less than
	// MinMemory.
	Memory int64 `json:"memory"`
}

// MinMemory is the least memory that a worker needs, in bytes.
const MinMemory = 128 << 20

// Workers are replaced after a while: CUE retains some memory of every package.
const (
	maxPackagesPerWorker = 200
	maxBytesPerWorker    = 16 << 20
)

// errTooLong is the cause of a context that ends because a package takes too long.
var errTooLong = errors.New("the package took too long")

// Pool evaluates in worker processes, at most GOMAXPROCS at a time, which it starts on demand and
// reuses. A package that exceeds the limits ends its worker and becomes a violation. Close ends all
// workers.
type Pool struct {
	program string
	args    []string
	limits  Limits
	slots   chan struct{}
	// lacksNamespaces is set once workers cannot get their own namespaces on this machine.
	lacksNamespaces atomic.Bool

	mu     sync.Mutex
	idle   []*worker
	closed bool
}

// NewPool returns a pool whose workers run the program with the arguments. The program has to call
// Serve with its standard input and output. An empty program is the running one.
func NewPool(limits Limits, program string, args ...string) *Pool {
	if limits.Timeout <= 0 {
		limits.Timeout = 30 * time.Second
	}
	if limits.Memory <= 0 {
		limits.Memory = 2 << 30
	}
	return &Pool{program: program, args: args, limits: limits, slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Evaluate implements Evaluator.
func (p *Pool) Evaluate(ctx context.Context, pkg Package) (Result, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	w, err := p.acquire(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		return Result{}, fmt.Errorf("starting a process to evaluate CUE: %w", err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.limits.Timeout, errTooLong)
	defer cancel()
	result, err := w.evaluate(limited, pkg)
	if err == nil {
		p.release(w)
		return result, nil
	}
	state := w.end()
	switch {
	case ctx.Err() != nil:
		return Result{}, ctx.Err()
	case errors.Is(context.Cause(limited), errTooLong):
		return failedResult(pkg, fmt.Sprintf("evaluating this took longer than %s: it was stopped; look for comprehensions over large lists, or raise the limit (--evaluation-timeout)", p.limits.Timeout)), nil
	case state == endedByMemory:
		return failedResult(pkg, fmt.Sprintf("evaluating this needed more than %s of memory: it was stopped; look for comprehensions over large lists, or raise the limit (--evaluation-memory)", formatSize(p.limits.Memory))), nil
	}
	return failedResult(pkg, "the CUE evaluator failed on this package; simplify it"), nil
}

// acquire returns a living idle worker, or a new one.
func (p *Pool) acquire(ctx context.Context) (*worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, errors.New("the pool is closed")
		}
		if len(p.idle) == 0 {
			p.mu.Unlock()
			return p.start(ctx)
		}
		w := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		p.mu.Unlock()
		if w.isAlive() {
			return w, nil
		}
		w.end()
	}
}

// start starts a worker in its own namespaces, or without them where they are forbidden.
func (p *Pool) start(ctx context.Context) (*worker, error) {
	program := p.program
	if program == "" {
		var err error
		if program, err = currentProgram(); err != nil {
			return nil, err
		}
	}
	if !p.lacksNamespaces.Load() {
		if w, err := startWorker(ctx, true, p.limits, program, p.args); err == nil || ctx.Err() != nil {
			return w, err
		}
		p.lacksNamespaces.Store(true)
	}
	return startWorker(ctx, false, p.limits, program, p.args)
}

// release returns a worker to the pool, or ends it after enough work.
func (p *Pool) release(w *worker) {
	p.mu.Lock()
	keep := !p.closed && w.packages < maxPackagesPerWorker && w.bytes < maxBytesPerWorker
	if keep {
		p.idle = append(p.idle, w)
	}
	p.mu.Unlock()
	if !keep {
		w.end()
	}
}

// Close ends all idle workers before it returns. Busy workers end when they finish.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, w := range idle {
		w.end()
	}
}

// currentProgram returns a path of the running program that stays valid if the file is replaced.
func currentProgram() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// formatSize formats a number of bytes for people.
func formatSize(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
