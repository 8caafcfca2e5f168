// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// publishedLabel marks a Secret of Publish. A Secret without it belongs to someone else.
const (
	publishedLabel      = "access.pergola.dev/made"
	publishedLabelValue = "true"
)

// IsPublished reports whether Publish has written a Secret.
func IsPublished(name string, labels map[string]string) bool {
	return name == SecretName && labels[publishedLabel] == publishedLabelValue
}

const fieldManager = "pergola"

// publishAttempts limits the attempts when someone else writes at the same time.
const publishAttempts = 3

// Publish copies the kubeconfig of a generated Secret to the fixed name, and reports whether it
// wrote. It leaves a Secret of someone else unchanged, and one whose client certificate former
// (PEM) has signed. former is the previous client CA while the API server accepts only its
// certificates, until it has restarted; else nil.
func Publish(ctx context.Context, client kubernetes.Interface, namespace, generated string, former []byte) (written bool, err error) {
	secrets := client.CoreV1().Secrets(namespace)
	from, err := secrets.Get(ctx, generated, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading the generated Secret %s/%s: %w", namespace, generated, err)
	}
	for attempt := 1; ; attempt++ {
		written, err := publishOnce(ctx, client, namespace, from.Data[KubeconfigKey], former)
		if err == nil || attempt == publishAttempts || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return written, err
		}
	}
}

func publishOnce(ctx context.Context, client kubernetes.Interface, namespace string, kubeconfig, former []byte) (written bool, err error) {
	secrets := client.CoreV1().Secrets(namespace)
	live, err := secrets.Get(ctx, SecretName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		made := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName, Labels: map[string]string{publishedLabel: publishedLabelValue}},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{KubeconfigKey: kubeconfig},
		}
		_, err = secrets.Create(ctx, made, metav1.CreateOptions{FieldManager: fieldManager})
		return err == nil, err
	case err != nil:
		return false, err
	case !IsPublished(live.Name, live.Labels), bytes.Equal(live.Data[KubeconfigKey], kubeconfig), isSignedBy(live.Data[KubeconfigKey], former):
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": live.ResourceVersion}, "data": map[string][]byte{KubeconfigKey: kubeconfig},
	})
	if err != nil {
		return false, fmt.Errorf("preparing the patch: %T", err) // may quote the content
	}
	_, err = secrets.Patch(ctx, SecretName, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err == nil, err
}

// isSignedBy reports whether a CA has signed the client certificate of a kubeconfig; it is false
// for unreadable input.
func isSignedBy(kubeconfig, authority []byte) bool {
	if len(authority) == 0 {
		return false
	}
	config, err := ParseKubeconfig(kubeconfig)
	if err != nil {
		return false
	}
	client, issuer := firstCertificate(config.CertData), firstCertificate(authority)
	return client != nil && issuer != nil && client.CheckSignatureFrom(issuer) == nil
}

func firstCertificate(raw []byte) *x509.Certificate {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return certificate
}
