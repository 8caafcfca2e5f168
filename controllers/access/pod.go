package access

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

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
