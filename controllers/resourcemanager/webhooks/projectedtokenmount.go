// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

const (
	// tokenVolumePrefix begins the names of token volumes of Kubernetes and ours.
	tokenVolumePrefix = "kube-api-access-"
	tokenVolume       = tokenVolumePrefix + "gardener"
	tokenDirectory    = "/var/run/secrets/kubernetes.io/serviceaccount"
	// defaultFileMode is the default mode of the files in the volume; maxFileMode is the maximum of
	// Kubernetes.
	defaultFileMode, maxFileMode = 0o644, 0o777
)

// tokenMount is the webhook that mounts expiring tokens for ServiceAccounts whose tokens Kubernetes
// does not mount.
type tokenMount struct {
	settings ProjectedTokenMount
	target   targetReader
}

func (t tokenMount) mutate(ctx context.Context, request *admissionv1.AdmissionRequest, pod *corev1.Pod) error {
	account := pod.Spec.ServiceAccountName
	if account == "" || account == "default" || !isTokenMountNeeded(pod) {
		return nil
	}
	// The namespace of the pod is not set yet; the request has it.
	found := &corev1.ServiceAccount{}
	if err := t.target.get(ctx, request.Namespace, account, found); apierrors.IsNotFound(err) {
		return denyForbidden("%s: ServiceAccount %s/%s does not exist", describeObject(request, &pod.ObjectMeta), request.Namespace, account)
	} else if err != nil {
		return fmt.Errorf("reading ServiceAccount %s/%s: %w", request.Namespace, account, err)
	}
	if ptr.Deref(found.AutomountServiceAccountToken, true) {
		return nil
	}
	if err := mountToken(pod, *t.settings.ExpirationSeconds); err != nil {
		return denyInvalid("%s: %v", describeObject(request, &pod.ObjectMeta), err)
	}
	return nil
}

// isTokenMountNeeded reports whether a pod wants a token and has none.
func isTokenMountNeeded(pod *corev1.Pod) bool {
	if !ptr.Deref(pod.Spec.AutomountServiceAccountToken, true) {
		return false
	}
	for _, volume := range pod.Spec.Volumes {
		if strings.HasPrefix(volume.Name, tokenVolumePrefix) {
			return false
		}
	}
	return true
}

// mountToken mounts a token into all containers of a pod. It is valid for the given number of
// seconds, unless an annotation overrides that.
func mountToken(pod *corev1.Pod, seconds int64) error {
	mode := int32(defaultFileMode)
	if text, ok := pod.Annotations[ProjectedTokenExpirationSeconds]; ok {
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil || value < minTokenExpiration || value > maxTokenExpiration {
			return fmt.Errorf("annotation %s is %q: want a whole number of seconds from %d (10 minutes) to %d", ProjectedTokenExpirationSeconds, text, minTokenExpiration, maxTokenExpiration)
		}
		seconds = value
	}
	if text, ok := pod.Annotations[ProjectedTokenFileMode]; ok {
		value, err := fileMode(text)
		if err != nil {
			return fmt.Errorf("annotation %s is %q: want the mode of files, 0 to 511 or, with a leading zero, to 0777", ProjectedTokenFileMode, text)
		}
		mode = value
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, newTokenVolume(mode, seconds))
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: tokenVolume, MountPath: tokenDirectory, ReadOnly: true})
		}
	}
	return nil
}

// fileMode parses a mode: decimal, as upstream does, or octal with a leading zero, as people
// usually write it.
func fileMode(text string) (int32, error) {
	base := 10
	if strings.HasPrefix(text, "0") {
		base = 8
	}
	mode, err := strconv.ParseInt(text, base, 32)
	if err == nil && (mode < 0 || mode > maxFileMode) {
		err = strconv.ErrRange
	}
	return int32(mode), err
}

// newTokenVolume has the content of a token volume of Kubernetes: token, CA of the API server and
// namespace.
func newTokenVolume(mode int32, seconds int64) corev1.Volume {
	return corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: &mode,
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &seconds}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
}
