// SPDX-License-Identifier: Apache-2.0

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

// deleteStaleRecords deletes the records of Shoots that no longer exist in the virtual garden: a
// new Shoot of the same name is a different one. It only reads the few Shoots that are not on this
// seed. A Shoot on another seed keeps its record.
func (g *Gardenlet) deleteStaleRecords(ctx context.Context) {
	there := map[string]bool{}
	for _, o := range g.objects.listKind(kindShoot) {
		there[convergenceRecordKey(owner.Shoot, o)] = true
	}
	var unknown []string
	for key := range g.seedRecords.records.Values() {
		if strings.HasPrefix(key, owner.Shoot+".") && !there[key] && !g.seedRecords.otherSeedShoots.has(key) {
			unknown = append(unknown, key)
		}
	}
	for _, key := range unknown {
		parts := strings.Split(key, ".")
		if len(parts) != 3 {
			continue
		}
		ref := apply.Ref{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: kindShoot, Namespace: parts[2], Name: parts[1]}
		_, err := g.connections.garden.GetLive(ctx, ref)
		switch {
		case err == nil:
			g.seedRecords.otherSeedShoots.add(key) // do not read it again
		case apierrors.IsNotFound(err):
			if err := g.seedRecords.records.Delete(ctx, func(other string) bool { return other == key }); err != nil {
				g.options.Log.Info("cannot remove the record of a deleted Shoot yet", "error", err)
			}
		default:
			return // the next assessment retries
		}
	}
}

// otherSeedShoots holds the record keys of Shoots on other seeds; it is safe for concurrent use.
type otherSeedShoots struct {
	mu   sync.Mutex
	keys map[string]bool
}

func (e *otherSeedShoots) has(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.keys[key]
}

func (e *otherSeedShoots) add(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keys == nil {
		e.keys = map[string]bool{}
	}
	e.keys[key] = true
}

// resetOtherSeedShoots forgets the Shoots on other seeds, so that deleteStaleRecords reads them
// again.
func (g *Gardenlet) resetOtherSeedShoots() {
	g.seedRecords.otherSeedShoots.mu.Lock()
	defer g.seedRecords.otherSeedShoots.mu.Unlock()
	clear(g.seedRecords.otherSeedShoots.keys)
}
