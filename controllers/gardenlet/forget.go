package gardenlet

import (
	"context"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// forgetGone deletes the records of Shoots that no longer exist in the virtual garden: a new Shoot
// of the same name is a different one. It only reads the few Shoots that are not on this seed. A
// Shoot on another seed keeps its record.
func (g *Gardenlet) forgetGone(ctx context.Context) {
	there := map[string]bool{}
	for _, o := range g.objects.all(kindShoot) {
		there[recordKey(owner.Shoot, o)] = true
	}
	var unknown []string
	for key := range g.noted.records.Values() {
		if strings.HasPrefix(key, owner.Shoot+".") && !there[key] && !g.noted.elsewhere.has(key) {
			unknown = append(unknown, key)
		}
	}
	for _, key := range unknown {
		parts := strings.Split(key, ".")
		if len(parts) != 3 {
			continue
		}
		ref := apply.Ref{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: kindShoot, Namespace: parts[2], Name: parts[1]}
		_, err := g.links.garden.GetLive(ctx, ref)
		switch {
		case err == nil:
			g.noted.elsewhere.add(key) // do not read it again
		case apierrors.IsNotFound(err):
			if err := g.noted.records.Delete(ctx, func(other string) bool { return other == key }); err != nil {
				g.options.Log.Info("the record of a Shoot that is gone could not be taken away yet", "error", err)
			}
		default:
			return // the next assessment retries
		}
	}
}

// elsewhere holds the record keys of Shoots on other seeds; it is safe for concurrent use.
type elsewhere struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (e *elsewhere) has(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.keys[key]
}

func (e *elsewhere) add(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keys == nil {
		e.keys = map[string]bool{}
	}
	e.keys[key] = true
}

// askElsewhere forgets the Shoots on other seeds, so that forgetGone reads them again.
func (g *Gardenlet) askElsewhere() {
	g.noted.elsewhere.mu.Lock()
	defer g.noted.elsewhere.mu.Unlock()
	clear(g.noted.elsewhere.keys)
}
