// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestTokenMounts: the resource manager's webhook mounts tokens into pods whose ServiceAccount has
// no token mounted by Kubernetes, in the runtime cluster and the seed. It was registered before the
// pods were created. Pods without a token declare that themselves.
func TestTokenMounts(t *testing.T) {
	skipIfNotRunning(t)
	for _, cluster := range []string{runtimeCluster, seedCluster} {
		client, err := localClient(cluster)
		require.NoError(t, err)
		accounts, err := client.CoreV1().ServiceAccounts("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		without := map[string]bool{}
		for _, a := range accounts.Items {
			without[a.Namespace+"/"+a.Name] = !ptr.Deref(a.AutomountServiceAccountToken, true)
		}
		pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		var mounted []string
		for _, pod := range pods.Items {
			if !without[pod.Namespace+"/"+pod.Spec.ServiceAccountName] || !ptr.Deref(pod.Spec.AutomountServiceAccountToken, true) {
				continue
			}
			if assert.True(t, hasToken(pod), "%s: pod %s/%s has no token of ServiceAccount %s", cluster, pod.Namespace, pod.Name, pod.Spec.ServiceAccountName) {
				mounted = append(mounted, pod.Spec.ServiceAccountName)
			}
		}
		t.Logf("%s: %s", cluster, strings.Join(mounted, ", "))
		if cluster == runtimeCluster {
			assert.Contains(t, mounted, "prometheus-operator")
		}
	}
}

func hasToken(pod corev1.Pod) bool {
	for _, volume := range pod.Spec.Volumes {
		if strings.HasPrefix(volume.Name, "kube-api-access-") && volume.Projected != nil {
			return true
		}
	}
	return false
}
