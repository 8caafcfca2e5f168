package schemas

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// Input is one object to validate.
type Input struct {
	// Object is the declaration; nil if it is being removed.
	Object *unstructured.Unstructured
	// Old is the object before the change, nil for a new one. It turns on the rules of updates and deletions.
	Old *unstructured.Unstructured
	// Positions finds the place of a field; nil leaves places out.
	Positions Positioner
}

// Options of Validate.
type Options struct {
	// Workers is the number of objects validated at the same time; default GOMAXPROCS.
	Workers int
	// RecycleAfter is the number of evaluations after which a worker drops its CUE context, which never shrinks by
	// itself; default 5000. An object takes one for each group of rules whose part of it was not seen before.
	RecycleAfter int
	// Landscape is what stands around the objects; nil validates every object on its own.
	Landscape *Surroundings
	// Cache keeps results between calls; nil keeps none.
	Cache *Cache
}

// keptRules is how many results of rules are kept where no cache is given: enough for a landscape of any size, since most
// of its objects are alike in most parts, in about 10 MiB.
const keptRules = 50_000

// Validate gives all findings about the given objects, sorted. Of kinds without a schema only the metadata are checked.
// The error is not nil if ctx ended, or if the schemas themselves are broken.
func Validate(ctx context.Context, inputs []Input, opts Options) ([]Violation, error) {
	s, err := embedded()
	if err != nil {
		return nil, err
	}
	return s.validate(ctx, inputs, opts)
}

func (s *sources) validate(ctx context.Context, inputs []Input, opts Options) ([]Violation, error) {
	landscape := newSurroundings(opts.Landscape)
	cache := opts.Cache
	if cache == nil {
		cache = &Cache{rules: newStore[[]ruled](keptRules)}
	}
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	recycleAfter := opts.RecycleAfter
	if recycleAfter <= 0 {
		recycleAfter = 5000
	}
	results := make([][]Violation, len(inputs))
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(workers, len(inputs)) {
		group.Go(func() error {
			var w *worker
			for {
				i := int(next.Add(1)) - 1
				if i >= len(inputs) {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				if w != nil && w.used >= recycleAfter {
					w.recycle()
				}
				found, err := s.validateOne(&w, inputs[i], landscape, cache)
				if err != nil {
					return err
				}
				results[i] = found
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("validating: %w", err)
	}
	var all []Violation
	for _, violations := range results {
		all = append(all, violations...)
	}
	Sort(all)
	return all, nil
}

// validateOne uses the cache, or else the worker, which is made when it is first needed.
func (s *sources) validateOne(w **worker, in Input, landscape *surroundings, cache *Cache) ([]Violation, error) {
	if in.Object == nil {
		return violations(in.Old, in.Positions, checkDeletion(in.Old, landscape)), nil
	}
	kind, ok := s.kinds[in.Object.GroupVersionKind()]
	if !ok {
		return violations(in.Object, in.Positions, checkForeign(in.Object)), nil
	}
	var old map[string]any
	if in.Old != nil {
		old = in.Old.Object
	}
	var key digest
	if cache.objects != nil {
		key = s.cacheKey(in.Object.Object, old, landscape)
	}
	findings, ok := cache.objects.get(key)
	if !ok {
		if *w == nil {
			*w = newWorker(s, landscape, cache.rules)
		}
		var panicked any
		var err error
		findings, panicked, err = (*w).checkSafely(kind, in.Object.Object, old)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s %s: %w", kind.GVK.Kind, in.Object.GetName(), err)
		case panicked != nil:
			*w = nil // what it holds may be half done
			return violations(in.Object, in.Positions, []finding{crashed}), nil
		}
		cache.objects.put(key, findings)
	}
	return violations(in.Object, in.Positions, findings), nil
}

// crashed is the finding about an object that a check panics on. The text of a panic may quote values.
var crashed = finding{typ: TypeInvalid, rule: RuleStructure, severity: SeverityError,
	message: "cannot be checked, because a check crashes: a fault of Pergola, not of the object; please report it with the object"}

// checkSafely is check for objects from anywhere: one that nobody thought of must not end the process, which may be the admission
// of a whole landscape.
func (w *worker) checkSafely(kind *structure.Kind, object, old map[string]any) (findings []finding, panicked any, err error) {
	defer func() { panicked = recover() }()
	findings, err = w.check(kind, object, old)
	return findings, nil, err
}

func (s *sources) cacheKey(object, old map[string]any, landscape *surroundings) digest {
	to := appendCanonical(appendText(nil, s.digest), object)
	if to = appendCanonical(to, old != nil); old != nil {
		to = appendCanonical(to, old)
	}
	if landscape != nil {
		to = appendText(to, landscape.digest)
	}
	return sha256.Sum256(to)
}

func violations(object *unstructured.Unstructured, positions Positioner, findings []finding) []Violation {
	result := make([]Violation, len(findings))
	for i, f := range findings {
		result[i] = Violation{
			Severity: f.severity, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
			Field: f.path, Type: f.typ, Rule: f.rule, Message: f.message,
		}
		if positions != nil {
			p := positions.Position(cmp.Or(f.at, f.path))
			result[i].File, result[i].Line, result[i].Column = p.File, p.Line, p.Column
		}
	}
	return result
}
