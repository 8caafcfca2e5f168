// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// task is one component of one owner, and its result.
type task struct {
	in     *Input
	opts   *Options
	images map[string]string
	dir    string

	component Component
	bundles   []Bundle
	err       error
}

// tasksOf lists the selected components of an owner.
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
		if isSelected(dir, opts.OnlyComponents) && (in.OnlyComponents == nil || slices.Contains(in.OnlyComponents, dir)) {
			tasks = append(tasks, &task{in: in, opts: opts, images: images, dir: dir})
		}
	}
	return tasks, nil
}

// tasksPerWorker is the number of components that justifies another goroutine, which has to load
// the catalogue again.
const tasksPerWorker = 4

// ownersPerWorker is the minimum of owners per worker for units of one owner.
const ownersPerWorker = 4

// taskBatches are tasks that one worker runs in sequence. For few owners, a unit is one component,
// which is built once for all of them; larger components come first. For many owners, a unit is one
// owner, whose declarations are encoded once.
func taskBatches(catalogue fs.FS, tasks []*task) [][]*task {
	byOwner, byDir := map[*Input][]*task{}, map[string][]*task{}
	var owners []*Input
	var dirs []string
	for _, t := range tasks {
		if byOwner[t.in] == nil {
			owners = append(owners, t.in)
		}
		if byDir[t.dir] == nil {
			dirs = append(dirs, t.dir)
		}
		byOwner[t.in], byDir[t.dir] = append(byOwner[t.in], t), append(byDir[t.dir], t)
	}
	out := make([][]*task, 0, len(dirs))
	if len(owners) >= ownersPerWorker*runtime.GOMAXPROCS(0) {
		for _, in := range owners {
			out = append(out, byOwner[in])
		}
		return out
	}
	sizes := make(map[string]int64, len(dirs))
	for _, dir := range dirs {
		sizes[dir] = int64(len(byDir[dir])) * cueSize(catalogue, dir)
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(sizes[b], sizes[a]) })
	for _, dir := range dirs {
		out = append(out, byDir[dir])
	}
	return out
}

// cueSize is the size of the CUE files in a folder, a rough measure of the time.
func cueSize(catalogue fs.FS, dir string) int64 {
	entries, _ := fs.ReadDir(catalogue, dir) // rendering reports errors
	size := int64(0)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && path.Ext(entry.Name()) == ".cue" {
			size += info.Size()
		}
	}
	return size
}

// evaluatorPool has the idle ones; nil makes a new one for each use.
type evaluatorPool struct {
	mutex sync.Mutex
	free  []*evaluator
}

func (e *evaluatorPool) get(catalogue fs.FS, dirs []string) *evaluator {
	if e == nil {
		return newEvaluator(catalogue, dirs...)
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if len(e.free) == 0 {
		return newEvaluator(catalogue, dirs...)
	}
	last := len(e.free) - 1
	out := e.free[last]
	e.free = e.free[:last]
	out.dirs = dirs
	return out
}

func (e *evaluatorPool) put(back *evaluator) {
	if e == nil {
		return
	}
	clear(back.encodedInputs)
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.free = append(e.free, back)
}

// runTasks renders on all cores, each with its own evaluator. The tasks have one catalogue.
func runTasks(opts Options, tasks []*task) {
	runTasksOn(runtime.GOMAXPROCS(0), opts.Catalogue, tasks, opts.evaluators)
}

func runTasksOn(cores int, catalogue fs.FS, tasks []*task, from *evaluatorPool) {
	var dirs []string
	for _, t := range tasks {
		dirs = append(dirs, t.dir)
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)

	work := taskBatches(catalogue, tasks)
	var next atomic.Int64
	var group sync.WaitGroup
	var panicked atomic.Pointer[any]
	worker := func() {
		defer func() {
			if p := recover(); p != nil {
				panicked.CompareAndSwap(nil, &p)
			}
		}()
		eval := from.get(catalogue, dirs)
		for i := next.Add(1) - 1; int(i) < len(work); i = next.Add(1) - 1 {
			for _, t := range work[i] {
				if eval.evaluations++; eval.evaluations > maxComponentsPerContext {
					eval = newEvaluator(catalogue, dirs...)
				}
				t.component, t.bundles, t.err = renderComponent(eval, t.dir, t.in, t.images, *t.opts)
				t.component.releaseValues()
			}
			if from == nil {
				eval.forgetComponents(work[i])
			}
		}
		from.put(eval)
	}
	for range min(cores, (len(tasks)+tasksPerWorker-1)/tasksPerWorker) {
		group.Go(worker)
	}
	group.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p) // in the caller's goroutine, which may handle it
	}
}
