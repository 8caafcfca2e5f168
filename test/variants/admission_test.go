// SPDX-License-Identifier: Apache-2.0

package variants

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAdmission: admission plugins follow their configurations, and a disabled plugin does nothing.
func TestAdmission(t *testing.T) {
	p := connectShoot(t, shootWithAdmission)
	baseline, trusted := p.ensureNamespace(t, "guarded"), p.ensureNamespace(t, "trusted")
	name := fmt.Sprintf("pod-%d", time.Now().UnixNano())
	create := func(namespace string, hostNetwork bool) (*corev1.Pod, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{HostNetwork: hostNetwork, Containers: []corev1.Container{{Name: "one", Image: "registry.example.org/one:1"}}}}
		return p.apiClient.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	}
	p.waitForServiceAccount(t, baseline)
	p.waitForServiceAccount(t, trusted)

	_, err := create(baseline, true)
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`)
	// the configured exemption, and Pergola's own
	for _, namespace := range []string{trusted, metav1.NamespaceSystem} {
		p.waitForServiceAccount(t, namespace)
		_, err = create(namespace, true)
		assert.NoError(t, err, namespace)
	}
	pod, err := create(baseline, false)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"variants": "selected"}, pod.Spec.NodeSelector, "PodNodeSelector")
	for _, toleration := range pod.Spec.Tolerations {
		assert.NotEqual(t, corev1.TaintNodeNotReady, toleration.Key, "DefaultTolerationSeconds is switched off")
	}

	// EventRateLimit: three at once and one a second.
	refused := 0
	for i := range 20 {
		_, err := p.apiClient.CoreV1().Events(trusted).Create(t.Context(), &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i)}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: trusted, Name: name},
		}, metav1.CreateOptions{})
		if err != nil {
			require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
			refused++
		}
	}
	assert.Positive(t, refused)
}

// TestDefaultTolerations: otherwise pods get the plugin's default tolerations, with the seconds of
// the Shoot.
func TestDefaultTolerations(t *testing.T) {
	p := connectShoot(t, shootAESGCM)
	namespace := p.ensureNamespace(t, "tolerant")
	p.waitForServiceAccount(t, namespace)
	pod, err := p.apiClient.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: "registry.example.org/one:1"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	seconds := map[string]int64{}
	for _, toleration := range pod.Spec.Tolerations {
		seconds[toleration.Key] = *toleration.TolerationSeconds
	}
	assert.Equal(t, map[string]int64{corev1.TaintNodeNotReady: 60, corev1.TaintNodeUnreachable: 90}, seconds)
}
