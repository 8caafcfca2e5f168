// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
)

// HasNewPasswords reports whether observability passwords were renewed and seeds still have the old
// ones.
func (s State) HasNewPasswords() bool {
	r := s.Rotation[Observability]
	return r.LastInitiationTime != nil && (r.LastCompletionTime == nil || r.LastCompletionTime.Before(r.LastInitiationTime))
}

// DistributeMonitoringPassword distributes the password of the landscape's monitoring to seeds. It
// waits until each seed's namespace has a copy of this Secret in namespace garden. Then it requests
// a reconciliation of the Seeds, and does not wait for it (as in upstream). It skips namespaces
// without any copy, because no one makes one there.
func (s GardenletRequester) DistributeMonitoringPassword(ctx context.Context, secret string) error {
	what, copies := "a copy of Secret garden/"+secret, s
	if s.Report != nil {
		copies.Report = func(string) { s.Report("namespaces of seeds wait for " + what) }
	}
	if err := copies.waitForGardenlets(ctx, "Seed ", what, func(ctx context.Context, _ string, _ map[types.UID]bool) (map[string]string, error) {
		return s.seedsWithoutCopy(ctx, secret)
	}); err != nil {
		return err
	}
	return s.waitForGardenlets(ctx, "Seed ", gardencorev1beta1.GardenerOperationReconcile, func(ctx context.Context, operation string, asked map[types.UID]bool) (map[string]string, error) {
		return s.requestOnSeeds(ctx, operation, asked, false)
	})
}

// seedsWithoutCopy returns the Seeds whose namespace has only a copy of another Secret.
func (s GardenletRequester) seedsWithoutCopy(ctx context.Context, secret string) (map[string]string, error) {
	seeds, err := s.listSeeds(ctx)
	if err != nil {
		return nil, err
	}
	waits := map[string]string{}
	for _, seed := range seeds {
		namespace := seedpublication.NamespacePrefix + seed.Name
		copies, err := s.Client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: gardencorev1beta1.GardenRole + "=" + gardencorev1beta1.GardenRoleGlobalMonitoring,
		})
		if err != nil {
			return nil, fmt.Errorf("list the Secrets of namespace %s: %w", namespace, err)
		}
		if len(copies.Items) > 0 && !slices.ContainsFunc(copies.Items, func(c metav1.PartialObjectMetadata) bool { return c.Name == secret }) {
			waits[seed.Name] = fmt.Sprintf("gardener-controller-manager has not copied it into namespace %s", namespace)
		}
	}
	return waits, nil
}
