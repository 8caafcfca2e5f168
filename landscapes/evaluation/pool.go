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

// Limits of one worker process.
type Limits struct {
	// Timeout is how long one package may take; default 30 seconds.
	Timeout time.Duration `json:"timeout"`
	// Memory is how much a worker may hold, in bytes; default 2 GiB. Not less than MinMemory.
	Memory int64 `json:"memory"`
}

// MinMemory is the least memory a worker can do with, in bytes.
const MinMemory = 128 << 20

// Workers do not live for ever: CUE keeps some memory of every package.
const (
	recyclePackages = 200
	recycleBytes    = 16 << 20
)

// errTooLong is the cause of a context that ended because a package took too long.
var errTooLong = errors.New("the package took too long")

// Pool evaluates in worker processes: at most as many as GOMAXPROCS at a time, started when they
// are needed, and used again. A package that exceeds the limits costs its worker, and is a
// violation. Close ends them.
type Pool struct {
	program string
	args    []string
	limits  Limits
	slots   chan struct{}
	// plain is set once workers turned out not to get namespaces of their own on this machine.
	plain atomic.Bool

	mu     sync.Mutex
	idle   []*worker
	closed bool
}

// NewPool makes a pool of workers that run the program with the arguments; it has to call Serve
// with its standard input and output. An empty program is this one.
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
	w, err := p.take(ctx)
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
		return failed(pkg, fmt.Sprintf("evaluating this took longer than %s: it was stopped; look for comprehensions over large lists, or raise the limit (--evaluation-timeout)", p.limits.Timeout)), nil
	case state == endedByMemory:
		return failed(pkg, fmt.Sprintf("evaluating this needed more than %s of memory: it was stopped; look for comprehensions over large lists, or raise the limit (--evaluation-memory)", size(p.limits.Memory))), nil
	}
	return failed(pkg, "the CUE evaluator failed on this package; simplify it"), nil
}

// take gives an idle worker that lives, or a new one.
func (p *Pool) take(ctx context.Context) (*worker, error) {
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
		if w.lives() {
			return w, nil
		}
		w.end()
	}
}

// start begins a worker in namespaces of its own, or without where that is forbidden.
func (p *Pool) start(ctx context.Context) (*worker, error) {
	program := p.program
	if program == "" {
		var err error
		if program, err = thisProgram(); err != nil {
			return nil, err
		}
	}
	if !p.plain.Load() {
		if w, err := startWorker(ctx, true, p.limits, program, p.args); err == nil || ctx.Err() != nil {
			return w, err
		}
		p.plain.Store(true)
	}
	return startWorker(ctx, false, p.limits, program, p.args)
}

// release keeps a worker for the next package, unless it did enough.
func (p *Pool) release(w *worker) {
	p.mu.Lock()
	keep := !p.closed && w.packages < recyclePackages && w.bytes < recycleBytes
	if keep {
		p.idle = append(p.idle, w)
	}
	p.mu.Unlock()
	if !keep {
		w.end()
	}
}

// Close ends all idle workers, and those at work when they are done. It returns when the idle ones
// are gone.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, w := range idle {
		w.end()
	}
}

// thisProgram gives a path of the running program that stays right when the file is replaced
// meanwhile.
func thisProgram() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// size writes a number of bytes for people.
func size(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}
