// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/controllers/references"
)

// keyKubeconfig is the key of a kubeconfig in a Secret (upstream's constant of the core API).
const keyKubeconfig = "kubeconfig"

// kubeconfigSecret rejects kubeconfigs that run a program or read a file where Gardener uses them.
func (w *webhooks) kubeconfigSecret(_ context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if request.Operation == admissionv1.Delete {
		return allowed()
	}
	secret, _, err := decodeObjects[corev1.Secret](request)
	if err != nil {
		return nil, err
	}
	kubeconfig, has := secret.Data[keyKubeconfig]
	if !has {
		return allowed()
	}
	if err := references.CheckKubeconfig(kubeconfig); err != nil {
		return invalid("Secret %s/%s %v", request.Namespace, request.Name, err)
	}
	return allowed()
}

// kubeconfigSecretRef protects a kubeconfig while a Shoot uses it.
func (w *webhooks) kubeconfigSecretRef(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if request.Operation != admissionv1.Update {
		return allowed()
	}
	secret, old, err := decodeObjects[corev1.Secret](request)
	if err != nil {
		return nil, err
	}
	if len(secret.Data[keyKubeconfig]) > 0 || len(old.Data[keyKubeconfig]) == 0 {
		return allowed()
	}
	using, err := w.findShoots(ctx, request.Namespace, func(shoot *unstructured.Unstructured) bool {
		return slices.Contains(kubeconfigsOf(shoot), request.Name)
	})
	if err != nil {
		return nil, err
	}
	if len(using) > 0 {
		return forbidden("data[%s] of Secret %s/%s cannot be removed or emptied: Shoots use it (%s)", keyKubeconfig, request.Namespace, request.Name, objectNames(using))
	}
	return allowed()
}

// kubeconfigsOf returns the Secrets with kubeconfigs that the API server of a Shoot uses.
func kubeconfigsOf(shoot *unstructured.Unstructured) []string {
	var out []string
	for _, at := range [][]string{{"admissionPlugins", "kubeconfigSecretName"}, {"structuredAuthorization", "kubeconfigs", "secretName"}} {
		list, _, _ := unstructured.NestedSlice(shoot.Object, append([]string{"spec", "kubernetes", "kubeAPIServer"}, at[:len(at)-1]...)...)
		for _, item := range list {
			entry, _ := item.(map[string]any)
			if name, _ := entry[at[len(at)-1]].(string); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}

// findShoots returns the Shoots of a namespace that fit.
func (w *webhooks) findShoots(ctx context.Context, namespace string, fits func(*unstructured.Unstructured) bool) ([]*unstructured.Unstructured, error) {
	all, err := w.Garden.List(ctx, shootsResource, namespace, "", 0)
	if err != nil {
		return nil, fmt.Errorf("reading the Shoots of namespace %s: %w", namespace, err)
	}
	var out []*unstructured.Unstructured
	for i := range all {
		if fits(&all[i]) {
			out = append(out, &all[i])
		}
	}
	return out, nil
}

func objectNames(objects []*unstructured.Unstructured) string {
	var out []string
	for _, o := range objects {
		out = append(out, o.GetName())
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
