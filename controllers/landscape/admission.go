// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/schemas"
)

// admitChange rejects changes of declarations that the API forbids: immutable fields, version
// downgrades, rotations out of order. The virtual garden rejects them only if admission webhooks
// are registered there.
func (c *Converger) admitChange(_ context.Context, live, next *unstructured.Unstructured) error {
	if !schemas.IsKnown(next.GroupVersionKind()) {
		return nil
	}
	after, err := c.admission.check(c, schemas.Input{Object: next, Old: live})
	if err != nil || !schemas.HasErrors(after) {
		return err
	}
	before, err := c.admission.check(c, schemas.Input{Object: next})
	if err != nil {
		return err
	}
	var refused []string
	for _, v := range after {
		// Findings that are not about the change were reported for the files already.
		if v.Severity == schemas.SeverityError && !slices.Contains(before, v) {
			refused = append(refused, v.Field+": "+v.Message)
		}
	}
	if len(refused) > 0 {
		return errors.New(strings.Join(refused, "; "))
	}
	return nil
}

// recordApplyResult records whether a declaration failed to apply.
func (c *Converger) recordApplyResult(ref apply.Ref, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.currentRun.failedDeclarations == nil {
		c.currentRun.failedDeclarations = map[apply.Ref]bool{}
	}
	c.currentRun.failedDeclarations[ref] = failed
}

// checkDeclarationApplied is an error for an owner whose declaration could not be applied. Its
// components would be rendered from the declaration in Git, which is not live.
func (c *Converger) checkDeclarationApplied(o *convergedOwner) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.currentRun.failedDeclarations[o.Ref] {
		return nil
	}
	return &apply.FollowsError{Err: fmt.Errorf("%s: not reconciled, because its declaration could not be applied", o)}
}

// admissionChecker checks objects against the rules, with the landscape as context. The checks are
// serial: compiling the rules takes long and much memory.
type admissionChecker struct {
	mu      sync.Mutex
	checker *schemas.Checker
}

// admissionCacheSize is the number of cached results: objects that change together share most
// parts.
const admissionCacheSize = 500

func (a *admissionChecker) check(c *Converger, in schemas.Input) ([]schemas.Violation, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.checker == nil {
		checker, err := schemas.NewChecker(schemas.Options{Landscape: c.admissionContext(), Cache: schemas.NewCache(admissionCacheSize)})
		if err != nil {
			return nil, err
		}
		a.checker = checker
	}
	return a.checker.Check(in)
}

// releaseRules releases the compiled rules.
func (a *admissionChecker) releaseRules() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checker = nil
}

// admissionContext returns all declarations; each is parsed when a rule needs it.
func (c *Converger) admissionContext() *schemas.LandscapeObjects {
	out := &schemas.LandscapeObjects{}
	for i := range c.landscape.Declarations {
		if in := c.landscape.Declarations[i].Input(); in.Lazy != nil {
			out.LazyObjects = append(out.LazyObjects, in.Lazy)
		} else {
			out.Objects = append(out.Objects, in.Object)
		}
	}
	return out
}
