// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/schemas/resultcache"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// Options are the options of Validate.
type Options struct {
	// Workers is the number of objects validated concurrently; default GOMAXPROCS.
	Workers int
	// MaxEvaluationsPerContext is the number of evaluations after which a worker drops its CUE
	// context, which never shrinks; the default is 5000. An object takes one evaluation for each
	// unit that reads new content.
	MaxEvaluationsPerContext int
	// Landscape is the landscape of the objects; nil validates every object on its own.
	Landscape *LandscapeObjects
	// Cache stores results between calls; nil stores none.
	Cache *Cache
}

func (o Options) withDefaults() Options {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.MaxEvaluationsPerContext <= 0 {
		o.MaxEvaluationsPerContext = 5000
	}
	if o.Cache == nil {
		o.Cache = &Cache{rules: newMemoryCache[[]ruleResult](defaultCachedRules)}
	}
	return o
}

// defaultCachedRules is the number of rule results stored without a given cache, in about 10 MiB.
// It is enough for a landscape of any size, because most objects are alike in most parts.
const defaultCachedRules = 50_000

// Validate returns all findings about the given objects, sorted. Kinds without a schema have only
// their metadata checked. It fails if ctx ends, or if the schemas are broken.
func Validate(ctx context.Context, inputs []Input, opts Options) ([]Violation, error) {
	s, err := embeddedSources()
	if err != nil {
		return nil, err
	}
	return s.validate(ctx, inputs, opts)
}

func (s *sources) validate(ctx context.Context, inputs []Input, opts Options) ([]Violation, error) {
	opts = opts.withDefaults()
	landscape := newLandscapeIndex(opts.Landscape)
	results := make([][]Violation, len(inputs))
	var next atomic.Int64
	group, ctx := panics.WithContext(ctx)
	for range min(opts.Workers, len(inputs)) {
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
				if w != nil && w.evaluations >= opts.MaxEvaluationsPerContext {
					w.resetContext()
				}
				found, err := s.validateOne(&w, inputs[i], landscape, opts.Cache)
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
	SortViolations(all)
	return all, nil
}

// Checker validates objects one after the other with the same options. It is not safe for
// concurrent use.
type Checker struct {
	sources      *sources
	worker       *worker
	landscape    *landscapeIndex
	cache        *Cache
	recycleAfter int
}

// NewChecker returns a checker. It fails if the schemas are broken.
func NewChecker(opts Options) (*Checker, error) {
	s, err := embeddedSources()
	if err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	return &Checker{sources: s, landscape: newLandscapeIndex(opts.Landscape), cache: opts.Cache, recycleAfter: opts.MaxEvaluationsPerContext}, nil
}

// Check returns the findings about one object.
func (c *Checker) Check(in Input) ([]Violation, error) {
	if c.worker != nil && c.worker.evaluations >= c.recycleAfter {
		c.worker.resetContext()
	}
	found, err := c.sources.validateOne(&c.worker, in, c.landscape, c.cache)
	if err != nil {
		return nil, fmt.Errorf("validating: %w", err)
	}
	SortViolations(found)
	return found, nil
}

// validateOne uses the cache, or else the worker, which is created on first use.
func (s *sources) validateOne(w **worker, in Input, landscape *landscapeIndex, cache *Cache) ([]Violation, error) {
	if !in.IsDeclared() {
		return toViolations(in, checkDeletion(in.OldContent(), landscape)), nil
	}
	gvk, _, name := in.Identity()
	if !s.kinds.has(gvk) {
		return toViolations(in, checkUnknownKind(in.Content())), nil
	}
	var key resultcache.Key
	if cache.canCacheObjects() {
		key = s.cacheKey(in, landscape)
	}
	findings, ok := cache.findings(key)
	if !ok {
		ok = s.isCleanWhenNew(in, landscape, cache)
	}
	if !ok {
		kind, err := s.kinds.get(gvk)
		if err != nil {
			return nil, err
		}
		if *w == nil {
			*w = newWorker(s, landscape, cache.rules)
		}
		var old map[string]any
		if in.HasOld() {
			old = in.OldContent().Object
		}
		var panicked any
		findings, panicked, err = (*w).checkWithRecovery(kind, in.Content().Object, old)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s %s: %w", gvk.Kind, name, err)
		case panicked != nil:
			*w = nil // its state may be incomplete
			return toViolations(in, []finding{panicFinding}), nil
		}
		cache.store(key, findings)
	}
	return toViolations(in, landscape.dropDefaulted(in, findings)), nil
}

// isCleanWhenNew reports whether the object is known to have no findings as a new one. An unchanged
// object then has none either: rules of updates compare, and checks of new objects do not apply
// (TestUnchangedObjectsHaveNoMoreFindings). So the first change of a landscape only validates
// changed objects.
func (s *sources) isCleanWhenNew(in Input, landscape *landscapeIndex, cache *Cache) bool {
	created, same := in.AsNew()
	if !same || !cache.canCacheObjects() {
		return false
	}
	found, known := cache.findings(s.cacheKey(created, landscape))
	return known && len(found) == 0
}

// panicFinding is the finding about an object on which a check panics. It omits the text of the
// panic, which may quote values.
var panicFinding = finding{typ: TypeInvalid, rule: RuleStructure, severity: SeverityError,
	message: "cannot be checked, because a check crashes: a fault of Pergola, not of the object; please report it with the object"}

// checkWithRecovery is check for objects from anywhere: an unexpected one must not end the process,
// which may be the admission of a whole landscape.
func (w *worker) checkWithRecovery(kind *structure.Kind, object, old map[string]any) (findings []finding, panicked any, err error) {
	defer func() { panicked = recover() }()
	findings, err = w.check(kind, object, old)
	return findings, nil, err
}

// kindsReadingTheLandscape lists the kinds, by structure.RulesName, whose findings depend on other
// objects, by a rule in CUE or in Go. TestKindsReadingTheLandscape compares it with the rules.
var kindsReadingTheLandscape = map[string]bool{
	"CloudProfile": true, "Garden": true, "Gardenlet": true, "ManagedSeed": true, "ManagedSeedSet": true, "NamespacedCloudProfile": true,
}

// cacheKey returns the digest of everything that the findings about an object depend on.
func (s *sources) cacheKey(in Input, landscape *landscapeIndex) resultcache.Key {
	gvk, _, _ := in.Identity()
	own := in.Digest()
	to := appendText(own[:], s.digest)
	to = appendCanonical(to, in.HasOld())
	to = appendCanonical(to, landscape != nil)
	if landscape != nil && kindsReadingTheLandscape[structure.RulesName(gvk)] {
		all := landscape.selectionDigest(nil)
		to = append(to, all[:]...)
	}
	return sha256.Sum256(to)
}

func toViolations(in Input, findings []finding) []Violation {
	if len(findings) == 0 {
		return nil
	}
	gvk, namespace, name := in.Identity()
	result := make([]Violation, len(findings))
	for i, f := range findings {
		result[i] = Violation{
			Severity: f.severity, Kind: gvk.Kind, Namespace: namespace, Name: name,
			Field: f.path, ActualField: f.documentPath, Type: f.typ, Rule: f.rule, Message: f.message,
		}
		if in.Positions != nil {
			p := findingPosition(in.Positions, f)
			result[i].File, result[i].Line, result[i].Column = p.File, p.Line, p.Column
		}
	}
	return result
}
