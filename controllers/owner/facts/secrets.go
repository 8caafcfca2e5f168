// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// controlPlaneSecrets returns all Secrets in the namespace of an owner's control plane.
func controlPlaneSecrets(ctx context.Context, s Source) ([]corev1.Secret, error) {
	client, err := kubernetes.NewForConfig(s.Local.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", s.Local.Name(), err)
	}
	list, err := client.CoreV1().Secrets(s.Owner.ControlPlaneNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the generated secrets of %s: %w", s.Owner, s.Local.Explain(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: s.Owner.ControlPlaneNamespace}, "list", err))
	}
	return list.Items, nil
}

// existingSecrets returns the facts of generated secrets by their labels, without checksums.
func existingSecrets(list []corev1.Secret, identity string) map[string]render.SecretFact {
	newest, bundles := map[string]*corev1.Secret{}, map[string]*corev1.Secret{}
	for i := range list {
		s := &list[i]
		// A Secret derived from generated ones has a role and no manager.
		if role, derived := s.Labels[labelRole]; derived && s.Labels[LabelManagedBy] == "" {
			setIfNewer(newest, role, s)
			continue
		}
		if s.Labels[LabelManagedBy] != "secrets-manager" || s.Labels[LabelIdentity] != identity {
			continue
		}
		if of := s.Labels[LabelBundleFor]; of != "" {
			setIfNewer(bundles, of, s)
		} else {
			setIfNewer(newest, s.Labels[LabelName], s)
		}
	}
	out := map[string]render.SecretFact{}
	for name, s := range newest {
		fact := render.SecretFact{Name: s.Name}
		if b := bundles[name]; b != nil {
			fact.Bundle = b.Name
			if pem := b.Data["bundle.crt"]; len(pem) > 0 {
				fact.CABundle = base64.StdEncoding.EncodeToString(pem)
			}
		}
		if key := s.Data["id_rsa.pub"]; len(key) > 0 {
			fact.PublicKey = base64.StdEncoding.EncodeToString(key)
		}
		out[name] = fact
	}
	return out
}

// setIfNewer prefers the secret that was issued later.
func setIfNewer(of map[string]*corev1.Secret, name string, s *corev1.Secret) {
	have := of[name]
	if have == nil || issueTime(have).Before(issueTime(s)) {
		of[name] = s
	}
}

func issueTime(s *corev1.Secret) time.Time {
	if at, err := strconv.ParseInt(s.Labels[labelIssuedAt], 10, 64); err == nil {
		return time.Unix(at, 0)
	}
	return s.CreationTimestamp.Time
}

// HasSameSecrets compares the parts of requested secrets that rendering uses, without checksums.
func HasSameSecrets(guessed, made map[string]render.SecretFact) bool {
	for name, fact := range made {
		fact.Checksum = ""
		if guessed[name] != fact {
			return false
		}
	}
	return true
}

// Labels of the secrets manager (upstream's).
const (
	LabelName      = "name"
	LabelBundleFor = "bundle-for"
	labelIssuedAt  = "issued-at-time"
	labelRole      = "role"
	LabelManagedBy = "managed-by"
	LabelIdentity  = "manager-identity"
)
