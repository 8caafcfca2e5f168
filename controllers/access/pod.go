// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// HasMatchingPod reports whether a Deployment with replicas has a matching pod.
func HasMatchingPod(ctx context.Context, cluster *rest.Config, d *appsv1.Deployment, matches func(corev1.Pod) bool) (bool, error) {
	if ptr.Deref(d.Spec.Replicas, 1) == 0 {
		return false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return false, fmt.Errorf("reading the selector of Deployment %s/%s: %w", d.Namespace, d.Name, err)
	}
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return false, err
	}
	pods, err := client.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(pods.Items, matches), nil
}

// IsPodServing reports whether a pod has neither ended nor is being deleted, and has an address for
// TCP. Played pods have no address, or a multicast one.
func IsPodServing(pod corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	return slices.ContainsFunc(append([]corev1.PodIP{{IP: pod.Status.PodIP}}, pod.Status.PodIPs...), func(ip corev1.PodIP) bool {
		address, err := netip.ParseAddr(ip.IP)
		return err == nil && !address.IsUnspecified() && !address.Unmap().IsMulticast()
	})
}

// IsPodReadyAndServing reports whether a serving pod is ready, too.
func IsPodReadyAndServing(pod corev1.Pod) bool {
	return IsPodServing(pod) && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
