package gardenlet

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner"
)

// forgetGone takes the records of Shoots away that are gone from the virtual garden: nothing of them is ever converged again, and a new Shoot of the
// name is another one. Only those that nothing is known of are asked for, which are few: one that is on another seed now keeps its record.
func (g *Gardenlet) forgetGone(ctx context.Context) {
	there := map[string]bool{}
	for _, o := range g.objects.all(kindShoot) {
		there[recordKey(owner.Shoot, o)] = true
	}
	g.records.mu.Lock()
	var unknown []string
	for key := range g.records.known {
		if strings.HasPrefix(key, owner.Shoot+".") && !there[key] && !g.records.elsewhere[key] {
			unknown = append(unknown, key)
		}
	}
	g.records.mu.Unlock()
	for _, key := range unknown {
		parts := strings.Split(key, ".")
		if len(parts) != 3 {
			continue
		}
		ref := apply.Ref{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: kindShoot, Namespace: parts[2], Name: parts[1]}
		_, err := g.garden.GetLive(ctx, ref)
		switch {
		case err == nil:
			g.records.mu.Lock()
			if g.records.elsewhere == nil {
				g.records.elsewhere = map[string]bool{}
			}
			g.records.elsewhere[key] = true // it is not asked for again
			g.records.mu.Unlock()
		case apierrors.IsNotFound(err):
			g.forgetRecord(ctx, key)
		default:
			return // the next look asks again
		}
	}
}

// askElsewhere lets Shoots that moved to other seeds be asked for again: by now they may be gone.
func (g *Gardenlet) askElsewhere() {
	g.records.mu.Lock()
	defer g.records.mu.Unlock()
	clear(g.records.elsewhere)
}

// forgetRecord takes one record away.
func (g *Gardenlet) forgetRecord(ctx context.Context, key string) {
	g.records.writing.Lock()
	defer g.records.writing.Unlock()
	if _, err := g.local.MergePatch(ctx, recordsRef(), map[string]any{"data": map[string]any{key: nil}}, "gardenlet", ""); err != nil && !apierrors.IsNotFound(err) {
		g.Log.Info("the record of a Shoot that is gone could not be taken away yet", "error", g.local.Explain(recordsRef(), "note", err))
		return
	}
	g.records.mu.Lock()
	defer g.records.mu.Unlock()
	delete(g.records.known, key)
}
