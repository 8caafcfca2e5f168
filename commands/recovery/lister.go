// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
)

const (
	labelManagedBy = "managed-by"
	secretsManager = "secrets-manager"
	labelPersist   = "persist"
	labelName      = "name"
	labelRole      = "gardener.cloud/role"
	valueTrue      = "true"
	kindSecret     = "Secret"
	kindConfigMap  = "ConfigMap"
	lastApplied    = "kubectl.kubernetes.io/last-applied-configuration"
)

// wildcardRoles are the roles of certificates that a person provides and that only this label
// identifies.
var wildcardRoles = []string{"garden-cert", "controlplane-cert"}

// listPageSize limits the items of one list response.
const listPageSize = 200

// lister reads the objects of a cluster for a backup.
type lister struct {
	cluster *apply.Cluster
	client  kubernetes.Interface
}

func newLister(c *apply.Cluster) (*lister, error) {
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	return &lister{c, client}, nil
}

func clusterUID(ctx context.Context, c *apply.Cluster) (string, error) {
	ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: metav1.NamespaceSystem}
	live, err := c.GetLive(ctx, ref)
	if err != nil {
		return "", c.Explain(ref, "read", err)
	}
	return string(live.GetUID()), nil
}

// secrets lists the Secrets of a cluster or a namespace with a label.
func (l *lister) secrets(ctx context.Context, namespace string, selector labels.Set) ([]corev1.Secret, error) {
	var out []corev1.Secret
	options := metav1.ListOptions{LabelSelector: selector.String(), Limit: listPageSize}
	for {
		list, err := l.client.CoreV1().Secrets(namespace).List(ctx, options)
		if err != nil {
			return nil, l.cluster.Explain(apply.Ref{APIVersion: "v1", Kind: kindSecret, Namespace: namespace}, "list", err)
		}
		out = append(out, list.Items...)
		if options.Continue = list.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

// managedSecrets returns the secrets manager's Secrets for a backup: all of namespace garden, and
// of Shoots' control planes those that upstream migrates, too. The others are signed again.
func (l *lister) managedSecrets(ctx context.Context) ([]corev1.Secret, error) {
	own, err := l.secrets(ctx, owner.InventoryNamespace, labels.Set{labelManagedBy: secretsManager})
	if err != nil {
		return nil, err
	}
	persisted, err := l.secrets(ctx, metav1.NamespaceAll, labels.Set{labelManagedBy: secretsManager, labelPersist: valueTrue})
	if err != nil {
		return nil, err
	}
	for _, s := range persisted {
		if s.Namespace != owner.InventoryNamespace {
			own = append(own, s)
		}
	}
	return own, nil
}

// generatedEntries returns the generated Secrets by creation time, so that a restore creates them
// in this order.
func (l *lister) generatedEntries(ctx context.Context) ([]*Entry, error) {
	found, err := l.managedSecrets(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(found, func(a, b corev1.Secret) int {
		return a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time)
	})
	var out []*Entry
	for i := range found {
		out = append(out, l.secret(&found[i], OriginGenerated))
	}
	return out, nil
}

func (l *lister) wildcardEntries(ctx context.Context) ([]*Entry, error) {
	var out []*Entry
	for _, role := range wildcardRoles {
		found, err := l.secrets(ctx, owner.InventoryNamespace, labels.Set{labelRole: role})
		if err != nil {
			return nil, err
		}
		for i := range found {
			if found[i].Labels[labelManagedBy] == "" {
				out = append(out, l.secret(&found[i], OriginReferenced))
			}
		}
	}
	return out, nil
}

// addLandscapeReferences adds the names that the operator's Landscapes reference.
func (l *lister) addLandscapeReferences(ctx context.Context, names map[string]bool) error {
	resource := landscapev1alpha1.SchemeGroupVersion.WithResource("landscapes")
	list, err := l.cluster.Dynamic().Resource(resource).Namespace(owner.InventoryNamespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // no operator is installed
	}
	if err != nil {
		return l.cluster.Explain(apply.Ref{APIVersion: resource.GroupVersion().String(), Kind: "Landscape", Namespace: owner.InventoryNamespace}, "list", err)
	}
	for i := range list.Items {
		maps.Copy(names, landscape.ReferencedNames(&list.Items[i]))
	}
	return nil
}

// referencedEntries returns the Secrets and ConfigMaps with these names that exist.
func (l *lister) referencedEntries(ctx context.Context, names map[string]bool) ([]*Entry, error) {
	var out []*Entry
	for _, name := range slices.Sorted(maps.Keys(names)) {
		secret, err := l.client.CoreV1().Secrets(owner.InventoryNamespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && secret.Labels[labelManagedBy] != secretsManager:
			out = append(out, l.secret(secret, OriginReferenced))
		case err != nil && !apierrors.IsNotFound(err):
			return nil, l.cluster.Explain(apply.Ref{APIVersion: "v1", Kind: kindSecret, Namespace: owner.InventoryNamespace, Name: name}, "read", err)
		}
		config, err := l.client.CoreV1().ConfigMaps(owner.InventoryNamespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			out = append(out, l.configMap(config, OriginReferenced))
		case !apierrors.IsNotFound(err):
			return nil, l.cluster.Explain(apply.Ref{APIVersion: "v1", Kind: kindConfigMap, Namespace: owner.InventoryNamespace, Name: name}, "read", err)
		}
	}
	return out, nil
}

// operationRecords returns the records of executed operations.
func (l *lister) operationRecords(ctx context.Context) ([]*Entry, error) {
	selector := labels.Set{owner.LabelBundle: landscape.OperationsBundle, owner.LabelCluster: landscape.Runtime}
	list, err := l.client.CoreV1().ConfigMaps(owner.InventoryNamespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, l.cluster.Explain(apply.Ref{APIVersion: "v1", Kind: kindConfigMap, Namespace: owner.InventoryNamespace}, "list", err)
	}
	var out []*Entry
	for i := range list.Items {
		out = append(out, l.configMap(&list.Items[i], OriginRecorded))
	}
	return out, nil
}

func (l *lister) secret(s *corev1.Secret, sort Origin) *Entry {
	e := l.entry(kindSecret, s.ObjectMeta, sort)
	e.object.Type, e.object.Immutable, e.object.Data = string(s.Type), s.Immutable != nil && *s.Immutable, s.Data
	for _, key := range []string{"ca.crt", corev1.TLSCertKey} {
		if e.Item.Certificate == nil {
			e.Item.Certificate = certificateOf(s.Data[key])
		}
	}
	return e
}

func (l *lister) configMap(c *corev1.ConfigMap, sort Origin) *Entry {
	e := l.entry(kindConfigMap, c.ObjectMeta, sort)
	e.object.Immutable, e.object.Data = c.Immutable != nil && *c.Immutable, map[string][]byte{}
	for key, text := range c.Data {
		e.object.Data[key] = []byte(text)
	}
	e.object.Binary = c.BinaryData
	return e
}

func (l *lister) entry(kind string, m metav1.ObjectMeta, sort Origin) *Entry {
	annotations := maps.Clone(m.Annotations)
	delete(annotations, lastApplied) // it repeats the values
	return &Entry{
		Item:   Item{Cluster: l.cluster.Name(), Kind: kind, Namespace: m.Namespace, Name: m.Name, Origin: sort},
		object: storedObject{Labels: m.Labels, Annotations: annotations, Created: m.CreationTimestamp.UTC()},
	}
}

// certificateOf returns the public data of the first certificate, or nil.
func certificateOf(raw []byte) *Certificate {
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(c.Raw)
	return &Certificate{Subject: c.Subject.String(), SHA256: hex.EncodeToString(sum[:]), NotAfter: c.NotAfter.UTC()}
}

// liveEntry reads the current object for an entry, or nil.
func (l *lister) liveEntry(ctx context.Context, i Item) (*Entry, error) {
	ref := apply.Ref{APIVersion: "v1", Kind: i.Kind, Namespace: i.Namespace, Name: i.Name}
	var out *Entry
	var err error
	if i.Kind == kindSecret {
		var s *corev1.Secret
		if s, err = l.client.CoreV1().Secrets(i.Namespace).Get(ctx, i.Name, metav1.GetOptions{}); err == nil {
			out = l.secret(s, i.Origin)
		}
	} else {
		var c *corev1.ConfigMap
		if c, err = l.client.CoreV1().ConfigMaps(i.Namespace).Get(ctx, i.Name, metav1.GetOptions{}); err == nil {
			out = l.configMap(c, i.Origin)
		}
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, l.cluster.Explain(ref, "read", err)
	}
	return out, nil
}
