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
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/schemas"
)

// admit rejects changes of declarations that the API forbids: immutable fields, version downgrades,
// rotations out of order. The virtual garden rejects them only if admission webhooks are registered
// there.
func (c *Converger) admit(_ context.Context, live, next *unstructured.Unstructured) error {
	if !schemas.Known(next.GroupVersionKind()) {
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

// note records whether a declaration failed to apply.
func (c *Converger) note(ref apply.Ref, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.refused == nil {
		c.now.refused = map[apply.Ref]bool{}
	}
	c.now.refused[ref] = failed
}

// accepted is an error for an owner whose declaration could not be applied. Its components would be
// rendered from the declaration in Git, which is not live.
func (c *Converger) accepted(o *member) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.now.refused[o.Ref] {
		return nil
	}
	return &owner.FollowsError{Err: fmt.Errorf("%s: not reconciled, because what Git declares for it could not be applied", o)}
}

// admission checks objects against the rules, with the landscape as context. The checks are serial:
// compiling the rules takes long and much memory.
type admission struct {
	mu      sync.Mutex
	checker *schemas.Checker
}

// checkedAlike is the number of cached results: objects that change together share most parts.
const checkedAlike = 500

func (a *admission) check(c *Converger, in schemas.Input) ([]schemas.Violation, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.checker == nil {
		checker, err := schemas.NewChecker(schemas.Options{Landscape: c.surroundings(), Cache: schemas.NewCache(checkedAlike)})
		if err != nil {
			return nil, err
		}
		a.checker = checker
	}
	return a.checker.Check(in)
}

// end releases the compiled rules.
func (a *admission) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checker = nil
}

// surroundings returns all declarations; each is parsed when a rule needs it.
func (c *Converger) surroundings() *schemas.Surroundings {
	out := &schemas.Surroundings{}
	for i := range c.landscape.Declarations {
		if in := c.landscape.Declarations[i].Input(); in.Later != nil {
			out.Later = append(out.Later, in.Later)
		} else {
			out.Objects = append(out.Objects, in.Object)
		}
	}
	return out
}
