package renders

import (
	"slices"
	"sync"

	"github.com/pergola-dev/pergola/render"
)

// Kept is what owners were rendered to last, so that a revision that changes nothing of an owner
// costs no render. All who share one have to render with the same catalogue. It is safe for
// concurrent use; a nil one keeps nothing.
type Kept struct {
	mu sync.Mutex
	of map[string]rendered
}

// rendered is what an owner was rendered to, and from what.
type rendered struct {
	input  render.InputDigest
	result render.Result
}

// Render gives what is kept if it is made of the same input, and renders otherwise. Errors are not
// kept.
func (k *Kept) Render(in render.Input, options render.Options) (render.Result, error) {
	if k == nil {
		return render.Render(in, options)
	}
	digest, err := render.DigestInput(in, options)
	if err != nil {
		return render.Result{}, err
	}
	name := in.Owner.String()
	k.mu.Lock()
	last, ok := k.of[name]
	k.mu.Unlock()
	if ok && last.input == digest {
		return last.copy(), nil
	}
	result, err := render.Render(in, options)
	if err != nil {
		return result, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[string]rendered{}
	}
	kept := rendered{digest, result}
	k.of[name] = kept
	return kept.copy(), nil
}

// copy is the result with a list of its own: a reconciliation puts bundles in it that it renders
// again.
func (r rendered) copy() render.Result {
	out := r.result
	out.Bundles = slices.Clone(out.Bundles)
	return out
}
