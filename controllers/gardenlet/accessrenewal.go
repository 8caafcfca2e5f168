// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
)

const (
	// renewTimeout bounds one attempt to renew the access to the virtual garden.
	renewTimeout = time.Minute
	// expiryCheckInterval is the longest wait between two checks of the expiry: the Secret may be
	// replaced.
	expiryCheckInterval = time.Hour
	// minRenewalInterval is the shortest wait after a successful attempt: clocks may differ.
	minRenewalInterval = time.Minute
	// maxRenewalBackoff is the longest wait after a failed attempt.
	maxRenewalBackoff = 10 * time.Minute
)

// renewalOperations are the operations that ask the gardenlet of a Seed to renew its own access and
// that of other clients on the seed. (It gives no other client access to the virtual garden, and
// issues no workload identities.)
func renewalOperations() []string {
	return []string{
		gardencorev1beta1.GardenerOperationRenewKubeconfig, gardencorev1beta1.SeedOperationRenewGardenAccessSecrets, gardencorev1beta1.SeedOperationRenewWorkloadIdentityTokens,
	}
}

// accessRenewal renews the access to the virtual garden.
type accessRenewal struct {
	access access.TokenRenewer
	// requests receives the Seed that requests a renewal.
	requests chan *unstructured.Unstructured
}

// prepareGardenAccess prepares the connection to the virtual garden, with access from a Secret of
// the seed.
func (g *Gardenlet) prepareGardenAccess() error {
	read, err := access.NewSecretReader(g.options.Local)
	if err != nil {
		return fmt.Errorf("seed %s: %w", g.options.Seed, err)
	}
	secrets, err := kubernetes.NewForConfig(withWriteFence(g.options.Local, g.isSoleWriter))
	if err != nil {
		return fmt.Errorf("seed %s: %w", g.options.Seed, err)
	}
	connection := access.LazyConfig(access.RegisteredSeedSource(g.options.GardenSecret, read, g.options.Clock))
	connection.UserAgent = g.options.Local.UserAgent
	g.options.Garden = connection
	g.services.accessRenewal = &accessRenewal{
		access: access.TokenRenewer{Connection: withWriteFence(connection, g.isSoleWriter), Secrets: secrets, FieldManager: "gardenlet"}, requests: make(chan *unstructured.Unstructured, 1),
	}
	return nil
}

// requestAccessRenewal passes a renewal request of the Seed to renewals.
func (g *Gardenlet) requestAccessRenewal(o *unstructured.Unstructured) {
	if g.services.accessRenewal == nil || o.GetKind() != kindSeed || !slices.Contains(renewalOperations(), o.GetAnnotations()[gardencorev1beta1.GardenerOperation]) {
		return
	}
	select {
	case <-g.services.accessRenewal.requests: // the pending request is older
	default:
	}
	g.services.accessRenewal.requests <- o
}

// runAccessRenewal renews the access to the virtual garden before it expires and when the Seed
// requests it.
func (g *Gardenlet) runAccessRenewal(ctx context.Context) {
	if g.services.accessRenewal == nil {
		return
	}
	pause := g.options.Timing.RetryInterval
	var seed *unstructured.Unstructured
	for {
		wait, err := g.timeUntilRenewal(ctx)
		if seed != nil {
			wait = 0
		}
		if wait <= 0 && err == nil {
			err = g.renewAccess(ctx, seed)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause, seed = g.options.Timing.RetryInterval, nil
			wait = max(wait, minRenewalInterval)
		default:
			about := g.objects.get(kindSeed, "", g.options.Seed)
			if message := fmt.Sprintf("its access to the virtual garden cannot be renewed; retrying: %v", err); about != nil {
				g.warnOnce(about, reasonAccessNotRenewed, message)
			} else {
				g.options.Log.Warn(message)
			}
			wait, pause = pause, min(2*pause, maxRenewalBackoff)
		}
		timer := g.options.Clock.NewTimer(wait)
		select {
		case <-timer.C():
		case next := <-g.services.accessRenewal.requests:
			seed = next
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// timeUntilRenewal returns the time until the next renewal or check.
func (g *Gardenlet) timeUntilRenewal(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	due, err := g.services.accessRenewal.access.RenewalTime(ctx)
	if errors.Is(err, access.ErrNotRenewable) {
		return expiryCheckInterval, nil // the issuer renews it, until the Seed requests it here
	}
	if err != nil || due.IsZero() {
		return expiryCheckInterval, err
	}
	return min(due.Sub(g.options.Clock.Now()), expiryCheckInterval), nil
}

// renewAccess renews the access. If a Seed requested it, renew then removes its annotation as the
// answer.
func (g *Gardenlet) renewAccess(ctx context.Context, seed *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	if seed != nil {
		live, err := g.connections.garden.GetLive(ctx, apply.RefOf(seed))
		if err != nil {
			return g.connections.garden.Explain(apply.RefOf(seed), "read", err)
		}
		if live.GetUID() != seed.GetUID() || !slices.Contains(renewalOperations(), live.GetAnnotations()[gardencorev1beta1.GardenerOperation]) {
			return nil // the request was withdrawn, or is already handled
		}
		seed = live
	}
	if err := g.services.accessRenewal.access.Renew(ctx); err != nil {
		return err
	}
	g.options.Log.Info("the access to the virtual garden is renewed", "secret", g.options.GardenSecret.String())
	if about := g.objects.get(kindSeed, "", g.options.Seed); about != nil {
		g.warnOnce(about, reasonAccessNotRenewed, "")
	}
	if seed == nil {
		return nil
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return g.removeRenewalOperation(ctx, apply.RefOf(seed)) })
}

// removeRenewalOperation removes the annotation of a handled renewal request.
func (g *Gardenlet) removeRenewalOperation(ctx context.Context, ref apply.Ref) error {
	live, err := g.connections.garden.GetLive(ctx, ref)
	if err != nil {
		return g.connections.garden.Explain(ref, "read", err)
	}
	if !slices.Contains(renewalOperations(), live.GetAnnotations()[gardencorev1beta1.GardenerOperation]) {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": live.GetResourceVersion(), "annotations": map[string]any{gardencorev1beta1.GardenerOperation: nil, gardencorev1beta1.GardenerTimestamp: nil},
	}}
	_, err = g.connections.garden.MergePatch(ctx, ref, patch, "gardenlet", "")
	return err
}
