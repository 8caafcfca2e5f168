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

// labelMade is on what Publish has written. What does not have it belongs to somebody else.
const (
	labelMade = "access.pergola.dev/made"
	valueMade = "true"
)

// IsPublished tells a Secret that Publish has written.
func IsPublished(name string, labels map[string]string) bool {
	return name == SecretName && labels[labelMade] == valueMade
}

// fieldManager writes the Secret.
const fieldManager = "pergola"

// publishAttempts is how often it is looked again when somebody else writes at the same time.
const publishAttempts = 3

// Publish copies the kubeconfig of a generated Secret to the fixed name, and says whether it was
// not there. A Secret of that name that somebody else has written stays as it is; so does one with
// a client certificate that former has signed, in PEM: the authority that another one has taken the
// place of, whose certificates are the only ones that the API server knows until it has been
// started anew. Nil once it has, or where there was none.
func Publish(ctx context.Context, client kubernetes.Interface, namespace, generated string, former []byte) (written bool, err error) {
	secrets := client.CoreV1().Secrets(namespace)
	from, err := secrets.Get(ctx, generated, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("reading the generated Secret %s/%s: %w", namespace, generated, err)
	}
	for attempt := 1; ; attempt++ {
		written, err := publish(ctx, client, namespace, from.Data[Key], former)
		if err == nil || attempt == publishAttempts || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return written, err
		}
	}
}

func publish(ctx context.Context, client kubernetes.Interface, namespace string, kubeconfig, former []byte) (written bool, err error) {
	secrets := client.CoreV1().Secrets(namespace)
	live, err := secrets.Get(ctx, SecretName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		made := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName, Labels: map[string]string{labelMade: valueMade}},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{Key: kubeconfig},
		}
		_, err = secrets.Create(ctx, made, metav1.CreateOptions{FieldManager: fieldManager})
		return err == nil, err
	case err != nil:
		return false, err
	case !IsPublished(live.Name, live.Labels), bytes.Equal(live.Data[Key], kubeconfig), isSignedBy(live.Data[Key], former):
		return false, nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": live.ResourceVersion}, "data": map[string][]byte{Key: kubeconfig},
	})
	if err != nil {
		return false, fmt.Errorf("preparing the patch: %T", err) // its text could be of the content
	}
	_, err = secrets.Patch(ctx, SecretName, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	return err == nil, err
}

// isSignedBy tells whether a kubeconfig has a client certificate that an authority has signed. What
// cannot be read has none.
func isSignedBy(kubeconfig, authority []byte) bool {
	if len(authority) == 0 {
		return false
	}
	config, err := Kubeconfig(kubeconfig)
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
