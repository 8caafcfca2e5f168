// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/render/availability"
)

// TestWorkloadIsSpread: all workload in considered namespaces tolerates lost nodes only briefly,
// and is spread. This includes the workload of Etcds, which only the resource manager's webhook
// sees.
func TestWorkloadIsSpread(t *testing.T) {
	skipIfNotRunning(t)
	available := connectShoot(t, shootHighlyAvailable).namespace
	for _, cluster := range []string{runtimeCluster, seedCluster} {
		client, err := localClient(cluster)
		require.NoError(t, err)
		namespaces, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: gardencorev1beta1.HighAvailabilityConfigConsider + "=true"})
		require.NoError(t, err)
		require.NotEmpty(t, namespaces.Items)
		etcds := 0
		for _, namespace := range namespaces.Items {
			check := func(name string, meta metav1.ObjectMeta, replicas *int32, pods corev1.PodSpec) []corev1.TopologySpreadConstraint {
				_, skipped := meta.Labels[availability.SkipLabel]
				if skipped {
					return nil
				}
				name = cluster + " " + namespace.Name + "/" + name
				for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
					assert.Contains(t, pods.Tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
						TolerationSeconds: ptr.To[int64](60)}, name)
				}
				// Some control planes have one API server because of an overlay, which sets the
				// annotation.
				if own := meta.Annotations[gardencorev1beta1.HighAvailabilityConfigReplicas]; own == "" && meta.Labels[gardencorev1beta1.HighAvailabilityConfigType] == "server" {
					assert.NotEqual(t, int32(1), ptr.Deref(replicas, 1), name)
				}
				if ptr.Deref(replicas, 1) > 1 {
					assert.NotEmpty(t, pods.TopologySpreadConstraints, name)
				}
				return pods.TopologySpreadConstraints
			}
			deployments, err := client.AppsV1().Deployments(namespace.Name).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, d := range deployments.Items {
				check(d.Name, d.ObjectMeta, d.Spec.Replicas, d.Spec.Template.Spec)
			}
			sets, err := client.AppsV1().StatefulSets(namespace.Name).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			for _, s := range sets.Items {
				constraints := check(s.Name, s.ObjectMeta, s.Spec.Replicas, s.Spec.Template.Spec)
				if s.Labels["app"] != "etcd-statefulset" && s.Spec.Template.Labels["app"] != "etcd-statefulset" {
					continue
				}
				etcds++
				if cluster != seedCluster || namespace.Name != available {
					continue
				}
				var keys []string
				for _, constraint := range constraints {
					keys = append(keys, constraint.TopologyKey)
					assert.Equal(t, corev1.DoNotSchedule, constraint.WhenUnsatisfiable, s.Name)
					assert.Equal(t, ptr.To[int32](3), constraint.MinDomains, s.Name)
					assert.Equal(t, s.Spec.Selector, constraint.LabelSelector, s.Name)
				}
				assert.Equal(t, []string{corev1.LabelHostname, corev1.LabelTopologyZone}, keys, "%s survives a zone", s.Name)
			}
		}
		assert.Positive(t, etcds, "%s: StatefulSets of etcd", cluster)
	}
}
