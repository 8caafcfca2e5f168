// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
)

const (
	// seedsTimeout is the time limit of all gardenlets for one operation; seedsInterval is the time
	// between polls (upstream: the same limit, 5 s).
	seedsTimeout, seedsInterval = 10 * time.Minute, 2 * time.Second
	// staleLeaseAge is the age from which an error reports an old Lease.
	staleLeaseAge = time.Minute
	// gardenletNamespace has the Gardenlets; selfHostedPrefix begins the names of those of
	// self-hosted Shoots (as in upstream).
	gardenletNamespace, selfHostedPrefix = "garden", "self-hosted-shoot-"
)

// SeedOperations returns the operations that gardenlets have to run now, in order. Seeds still have
// the old credentials, which become invalid when the rotation completes.
func (s State) SeedOperations() []string {
	var out []string
	for _, each := range []struct {
		kind      Kind
		operation string
	}{
		{ServiceAccountKey, gardencorev1beta1.SeedOperationRenewGardenAccessSecrets},
		{WorkloadIdentityKey, gardencorev1beta1.SeedOperationRenewWorkloadIdentityTokens},
		{CertificateAuthorities, gardencorev1beta1.GardenerOperationRenewKubeconfig},
	} {
		if s.Phase(each.kind) == gardencorev1beta1.RotationPreparing {
			out = append(out, each.operation)
		}
	}
	return out
}

// GardenletRequester requests operations from gardenlets through their Seeds in the virtual garden.
type GardenletRequester struct {
	Client metadata.Interface
	Leases kubernetes.Interface
	// FieldManager sets the annotation.
	FieldManager string
	Clock        clock.WithTicker
	// Report receives messages about the current wait; it may be nil.
	Report func(message string)
}

// RequestFromSeeds sets an operation on all Seeds with a gardenlet, and waits until each gardenlet
// has removed the annotation. A Seed with another operation gets this one afterwards. A Seed
// without a Lease has no gardenlet: it uses someone's kubeconfig, and has nothing to renew. After
// ten minutes it returns an error with the Seeds and the reasons; another call continues.
func (s GardenletRequester) RequestFromSeeds(ctx context.Context, operation string) error {
	return s.waitForGardenlets(ctx, "Seed ", operation, s.requestAll)
}

// RequestFromSelfHosted requests an operation from the gardenlets of self-hosted Shoots, which have
// a Gardenlet and no Seed, and waits for all.
func (s GardenletRequester) RequestFromSelfHosted(ctx context.Context, operation string) error {
	return s.waitForGardenlets(ctx, "Gardenlet "+gardenletNamespace+"/", operation, s.requestOnSelfHosted)
}

// waitForGardenlets calls ask until no object is waited for. kind is the prefix of their names.
func (s GardenletRequester) waitForGardenlets(ctx context.Context, kind, operation string, ask func(context.Context, string, map[types.UID]bool) (map[string]string, error)) error {
	began, asked := s.Clock.Now(), map[types.UID]bool{}
	ticker := s.Clock.NewTicker(seedsInterval)
	defer ticker.Stop()
	for {
		waits, err := ask(ctx, operation, asked)
		if err == nil && len(waits) == 0 {
			return nil
		}
		if s.Report != nil && len(waits) > 0 {
			s.Report(fmt.Sprintf("gardenlets have to complete %s: %s", operation, strings.Join(firstNames(waits), ", ")))
		}
		if s.Clock.Since(began) >= seedsTimeout {
			return errors.Join(err, unfinishedErrors(kind, operation, waits))
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err, unfinishedErrors(kind, operation, waits))
		}
	}
}

func unfinishedErrors(kind, operation string, waits map[string]string) error {
	var out []error
	for _, name := range slices.Sorted(maps.Keys(waits)) {
		out = append(out, fmt.Errorf("%s: %s is not done: %s", kind+name, operation, waits[name]))
	}
	return errors.Join(out...)
}

// firstNames returns the names, at most the first five.
func firstNames(waits map[string]string) []string {
	const most = 5
	out := slices.Sorted(maps.Keys(waits))
	if len(out) > most {
		out = append(out[:most], fmt.Sprintf("and %d more", len(out)-most))
	}
	return out
}

// requestAll sets the operation on Seeds without it. It returns the unfinished Seeds with reasons.
func (s GardenletRequester) requestAll(ctx context.Context, operation string, asked map[types.UID]bool) (map[string]string, error) {
	return s.requestOnSeeds(ctx, operation, asked, true)
}

// requestOnSeeds is requestAll; without wait it returns only Seeds that could not get the operation
// yet, because they have another one.
func (s GardenletRequester) requestOnSeeds(ctx context.Context, operation string, asked map[types.UID]bool, wait bool) (map[string]string, error) {
	seeds, err := s.listSeeds(ctx)
	if err != nil {
		return nil, err
	}
	waits := map[string]string{}
	for _, seed := range seeds {
		now := seed.Annotations[gardencorev1beta1.GardenerOperation]
		if asked[seed.UID] && now != operation {
			continue // done, and perhaps with another operation since
		}
		heard, err := s.lastHeartbeat(ctx, seed.Name)
		if err != nil {
			return nil, err
		}
		if heard == nil {
			continue
		}
		if now != "" {
			asked[seed.UID] = asked[seed.UID] || now == operation
		} else if asked[seed.UID], err = s.setOperation(ctx, s.seedClient(), &seed, operation); err != nil {
			return nil, fmt.Errorf("ask Seed %s for %s: %w", seed.Name, operation, err)
		}
		if wait || !asked[seed.UID] {
			waits[seed.Name] = s.waitReason(seed.Name, operation, now, heard)
		}
	}
	return waits, nil
}

func (s GardenletRequester) seedClient() metadata.ResourceInterface {
	return s.Client.Resource(gardencorev1beta1.SchemeGroupVersion.WithResource("seeds"))
}

// listSeeds returns the Seeds that are not being deleted.
func (s GardenletRequester) listSeeds(ctx context.Context) ([]metav1.PartialObjectMetadata, error) {
	list, err := s.seedClient().List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // the API is not served yet
	}
	if err != nil {
		return nil, fmt.Errorf("list the Seeds: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(seed metav1.PartialObjectMetadata) bool { return seed.DeletionTimestamp != nil }), nil
}

// requestOnSelfHosted is requestAll for Gardenlets of self-hosted Shoots. It waits for all (as in
// upstream): they have no Lease that shows a missing gardenlet.
func (s GardenletRequester) requestOnSelfHosted(ctx context.Context, operation string, asked map[types.UID]bool) (map[string]string, error) {
	resource := s.Client.Resource(seedmanagementv1alpha1.SchemeGroupVersion.WithResource("gardenlets")).Namespace(gardenletNamespace)
	list, err := resource.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // the API is not served
	}
	if err != nil {
		return nil, fmt.Errorf("list the Gardenlets of self-hosted Shoots: %w", err)
	}
	waits := map[string]string{}
	for _, gardenlet := range list.Items {
		now := gardenlet.Annotations[gardencorev1beta1.GardenerOperation]
		if !strings.HasPrefix(gardenlet.Name, selfHostedPrefix) || gardenlet.DeletionTimestamp != nil || asked[gardenlet.UID] && now != operation {
			continue
		}
		switch now {
		case "":
			waits[gardenlet.Name] = "its gardenlet has not answered"
			if asked[gardenlet.UID], err = s.setOperation(ctx, resource, &gardenlet, operation); err != nil {
				return nil, fmt.Errorf("ask Gardenlet %s/%s for %s: %w", gardenlet.Namespace, gardenlet.Name, operation, err)
			}
		case operation:
			waits[gardenlet.Name], asked[gardenlet.UID] = "its gardenlet has not answered; if it no longer exists, delete the Gardenlet", true
		default:
			waits[gardenlet.Name] = fmt.Sprintf("it has the operation %q, which comes first", now)
		}
	}
	return waits, nil
}

// setOperation writes an operation to an object, unless the object has changed meanwhile.
func (s GardenletRequester) setOperation(ctx context.Context, in metadata.ResourceInterface, to *metav1.PartialObjectMetadata, operation string) (bool, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": to.ResourceVersion, "annotations": map[string]any{gardencorev1beta1.GardenerOperation: operation},
	}})
	if err != nil {
		return false, err
	}
	_, err = in.Patch(ctx, to.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: cmp.Or(s.FieldManager, "pergola")})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// lastHeartbeat returns the time of the last heartbeat of a Seed's gardenlet, or nil if there never
// was one.
func (s GardenletRequester) lastHeartbeat(ctx context.Context, seed string) (*metav1.MicroTime, error) {
	lease, err := s.Leases.CoordinationV1().Leases(gardencorev1beta1.GardenerSystemSeedLeaseNamespace).Get(ctx, seed, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the Lease of Seed %s: %w", seed, err)
	}
	if lease.Spec.RenewTime == nil {
		return &metav1.MicroTime{Time: lease.CreationTimestamp.Time}, nil
	}
	return lease.Spec.RenewTime, nil
}

// waitReason returns the reason why a Seed is unfinished.
func (s GardenletRequester) waitReason(seed, operation, now string, heard *metav1.MicroTime) string {
	switch age := s.Clock.Since(heard.Time); {
	case age >= staleLeaseAge:
		return fmt.Sprintf("its gardenlet last renewed its Lease %s ago; start the gardenlet, or, if it no longer exists, delete Lease %s/%s",
			age.Round(time.Second), gardencorev1beta1.GardenerSystemSeedLeaseNamespace, seed)
	case now != "" && now != operation:
		return fmt.Sprintf("it has the operation %q, which comes first", now)
	}
	return "its gardenlet has not answered; see the Events of the Seed for the reason"
}
