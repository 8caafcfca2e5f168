// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waitForServiceAccount waits until the controller manager has created the default ServiceAccount
// of a namespace.
func (p *controlPlaneClient) waitForServiceAccount(t *testing.T, namespace string) {
	t.Helper()
	pollUntil(t, func(ctx context.Context) error {
		_, err := p.apiClient.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// TestControllerIdentities: controller managers and schedulers have their identities and rights in
// their clusters. They create the default objects of new namespaces.
func TestControllerIdentities(t *testing.T) {
	skipIfNotRunning(t)
	planes := map[string]*controlPlaneClient{"the Garden": connectGarden(t)}
	for _, shoot := range []string{shootAESGCM, shootSecretbox, shootWithAdmission, shootHighlyAvailable} {
		planes[shoot] = connectShoot(t, shoot)
	}
	name := fmt.Sprintf("controlled-%d", time.Now().UnixNano())
	for _, p := range planes {
		p.waitForServiceAccount(t, p.ensureNamespace(t, name))
	}

	p := planes[shootHighlyAvailable]
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("10")}
	node, err := p.apiClient.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = p.apiClient.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	})
	pod, err := p.apiClient.CoreV1().Pods(name).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "scheduled"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "one", Image: "registry.example.org/one:1"}}, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	pollUntil(t, func(ctx context.Context) error {
		pod, err := p.apiClient.CoreV1().Pods(name).Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && pod.Spec.NodeName != node.Name {
			return fmt.Errorf("the pod is on node %q: %v", pod.Spec.NodeName, pod.Status.Conditions)
		}
		return err
	})
}
