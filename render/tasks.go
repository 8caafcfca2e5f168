package render

import (
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// task is one component of one owner, and what became of it.
type task struct {
	in     *Input
	opts   *Options
	images map[string]string
	dir    string

	component Component
	bundles   []Bundle
	err       error
}

// tasksOf lists the components that are wanted for an owner.
func tasksOf(in *Input, opts *Options) ([]*task, error) {
	images, err := imagesFor(*in, *opts)
	if err != nil {
		return nil, err
	}
	dirs, err := componentDirs(opts.Catalogue, in.Owner.Kind)
	if err != nil {
		return nil, err
	}
	var tasks []*task
	for _, dir := range dirs {
		if wanted(dir, opts.Only) {
			tasks = append(tasks, &task{in: in, opts: opts, images: images, dir: dir})
		}
	}
	return tasks, nil
}

// tasksPerWorker is how many components make another goroutine worth it, which has to load the catalogue again.
const tasksPerWorker = 4

// runTasks renders on all cores, each with an evaluator of its own. The tasks are of one catalogue.
func runTasks(catalogue fs.FS, tasks []*task) {
	var dirs []string
	for _, t := range tasks {
		dirs = append(dirs, t.dir)
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)

	var next atomic.Int64
	var group sync.WaitGroup
	var panicked atomic.Pointer[any]
	work := func() {
		defer func() {
			if p := recover(); p != nil {
				panicked.CompareAndSwap(nil, &p)
			}
		}()
		eval := newEvaluator(catalogue, dirs...)
		for i := next.Add(1) - 1; int(i) < len(tasks); i = next.Add(1) - 1 {
			if eval.used++; eval.used > recycleAfter {
				eval = newEvaluator(catalogue, dirs...)
			}
			t := tasks[i]
			t.component, t.bundles, t.err = renderComponent(eval, t.dir, t.in, t.images, *t.opts)
		}
	}
	for range min(runtime.GOMAXPROCS(0), (len(tasks)+tasksPerWorker-1)/tasksPerWorker) {
		group.Go(work)
	}
	group.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p) // in the goroutine of the caller, who may know what to do
	}
}
