// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// autoscalerDeletionTaint is the taint of nodes that the cluster autoscaler is about to remove.
const autoscalerDeletionTaint = "ToBeDeletedByClusterAutoscaler"

// systemComponents is the webhook that places pods on the nodes for system components.
type systemComponents struct {
	settings SystemComponentsConfig
	target   targetReader
}

func (s systemComponents) mutate(ctx context.Context, _ *admissionv1.AdmissionRequest, pod *corev1.Pod) error {
	if isDaemonSetPod(pod) {
		return nil
	}
	nodes := &corev1.NodeList{}
	if err := s.target.cached.List(ctx, nodes, client.MatchingLabels(s.settings.NodeSelector)); err != nil {
		return fmt.Errorf("listing the nodes for system components: %w", err)
	}
	s.settings.applyTo(pod, nodes.Items)
	return nil
}

// isDaemonSetPod reports whether a pod belongs to a DaemonSet, which selects the node itself.
func isDaemonSetPod(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.APIVersion == "apps/v1" && owner.Kind == "DaemonSet"
}

// applyTo adds node selector and tolerations of the settings, and tolerations for the taints of
// nodes.
func (c SystemComponentsConfig) applyTo(pod *corev1.Pod, nodes []corev1.Node) {
	if len(c.PodNodeSelector) > 0 {
		if pod.Spec.NodeSelector == nil {
			pod.Spec.NodeSelector = map[string]string{}
		}
		maps.Copy(pod.Spec.NodeSelector, c.PodNodeSelector)
	}
	add := func(toleration corev1.Toleration) {
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return equality.Semantic.DeepEqual(t, toleration) }) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
		}
	}
	for _, toleration := range c.PodTolerations {
		add(*toleration.DeepCopy())
	}
	var tainted []corev1.Toleration
	for i := range nodes {
		for _, taint := range nodes[i].Spec.Taints {
			if !isTransientTaint(taint.Key) {
				tainted = append(tainted, tolerationFor(taint))
			}
		}
	}
	// Pods must not depend on the order of nodes.
	slices.SortFunc(tainted, func(a, b corev1.Toleration) int {
		return strings.Compare(a.Key+"\x00"+a.Value+"\x00"+string(a.Effect), b.Key+"\x00"+b.Value+"\x00"+string(b.Effect))
	})
	for _, toleration := range tainted {
		add(toleration)
	}
}

// isTransientTaint reports whether a taint is a temporary state of a node, not its purpose: pods
// must leave such a node.
func isTransientTaint(key string) bool {
	return strings.Contains(key, "kubernetes.io/") || key == autoscalerDeletionTaint
}

func tolerationFor(taint corev1.Taint) corev1.Toleration {
	t := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
	if taint.Value == "" {
		t.Operator = corev1.TolerationOpExists
	}
	return t
}
