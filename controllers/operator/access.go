package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/landscapes"
)

// suffixAgeKey ends the keys of a decryption Secret that hold age identities.
const suffixAgeKey = ".agekey"

// secrets reads Secrets one by one: the operator may not list them.
type secrets struct {
	client    client.Reader
	namespace string
	// outside gives the address of the virtual garden for a process that does not run in the
	// runtime cluster; nil for one that does.
	outside func(context.Context) (string, error)
}

// data of a Secret in the namespace of the Landscape; field says where it is referred to.
func (s secrets) data(ctx context.Context, ref *landscapev1alpha1.LocalSecretReference, field string) (map[string][]byte, error) {
	if ref == nil {
		return nil, nil
	}
	return s.at(ctx, client.ObjectKey{Namespace: s.namespace, Name: ref.Name}, field)
}

func (s secrets) at(ctx context.Context, key client.ObjectKey, field string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := s.client.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s: there is no Secret %s: %w", field, key, err)
	case err != nil:
		return nil, fmt.Errorf("%s: reading Secret %s: %w", field, key, err)
	}
	return secret.Data, nil
}

// identities are the age keys to decrypt with.
func (s secrets) identities(ctx context.Context, d *landscapev1alpha1.Decryption) ([]age.Identity, error) {
	if d == nil {
		return nil, nil
	}
	const field = "spec.decryption.secretRef"
	data, err := s.data(ctx, &d.SecretRef, field)
	if err != nil {
		return nil, err
	}
	var out []age.Identity
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if !strings.HasSuffix(key, suffixAgeKey) {
			continue
		}
		found, err := landscapes.ParseAgeIdentities(string(data[key]))
		if err != nil {
			return nil, fmt.Errorf("%s: Secret %s, key %s: %w", field, d.SecretRef.Name, key, err)
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: Secret %s has no key that ends in %s", field, d.SecretRef.Name, suffixAgeKey)
	}
	return out, nil
}

// locked is an error when no key opens some of the Secrets of a revision. It cannot be applied
// then, and the one before is kept.
func locked(object *landscapev1alpha1.Landscape, r *revision) error {
	var names []string
	for ref := range landscape.Locked(r.landscape) {
		names = append(names, ref.String())
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	hint := "set spec.decryption.secretRef"
	if d := object.Spec.Decryption; d != nil {
		hint = fmt.Sprintf("put an age key that they are encrypted for into Secret %s (spec.decryption.secretRef), under a key that ends in %s", d.SecretRef.Name, suffixAgeKey)
	}
	return fmt.Errorf("revision %s: %s: %s: %s", r.Revision(), landscape.NoKey(r.landscape), listed(names), hint)
}

// virtual is the access to the virtual garden, and a text that is another one when that is; nil for
// none. Where the Landscape names no Secret, it is found in the runtime cluster once the Garden is
// made there. The access of the garden is not everybody's: only Landscapes beside it have it.
func (s secrets) virtual(ctx context.Context, clusters *landscapev1alpha1.Clusters, options apply.ClusterOptions) (*rest.Config, string, error) {
	if clusters == nil || clusters.Virtual == nil || clusters.Virtual.SecretRef == nil {
		if s.namespace != access.NamespaceOfGarden {
			return nil, "", nil
		}
		return access.Late(s.source(options)), "derived", nil
	}
	const field = "spec.clusters.virtual.secretRef"
	ref := clusters.Virtual.SecretRef
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = s.namespace
	}
	if key.Namespace != s.namespace && s.namespace != access.NamespaceOfGarden {
		return nil, "", fmt.Errorf("%s: namespace %s: only Landscapes in namespace %s may name Secrets of other namespaces", field, key.Namespace, access.NamespaceOfGarden)
	}
	data, err := s.at(ctx, key, field)
	if err != nil {
		return nil, "", err
	}
	entry := ref.Key
	if entry == "" {
		entry = access.Key
	}
	if len(data[entry]) == 0 {
		return nil, "", fmt.Errorf("%s: Secret %s has no key %s", field, key, entry)
	}
	config, err := access.Kubeconfig(data[entry])
	if err != nil {
		return nil, "", fmt.Errorf("access to the virtual garden: %w", err)
	}
	sum := sha256.Sum256(data[entry])
	return config, hex.EncodeToString(sum[:]), nil
}

// source reads the access to the virtual garden as the operator itself, whatever account a
// Landscape is applied as.
func (s secrets) source(options apply.ClusterOptions) access.Source {
	read := func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
		secret := &corev1.Secret{}
		return secret, s.client.Get(ctx, key, secret)
	}
	out := access.OfVirtualGarden(read, options.Clock)
	out.Outside = s.outside
	return out
}

// clusters of a Landscape. Connections stay as long as the access is the same, and with them what
// is known of the cluster.
type clusters struct {
	runtime, virtual *apply.Cluster
	// runtimeID and virtualID say what the connections were made with.
	runtimeID, virtualID string

	mu sync.Mutex
	// former are those that others took the place of: what goes on may still use them.
	former []*apply.Cluster
}

// left notes a connection that another one takes the place of; nil for none.
func (c *clusters) left(former *apply.Cluster) {
	if former != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.former = append(c.former, former)
	}
}

// takeFormer gives the former connections to who knows when nobody uses them any more, and closes
// them then.
func (c *clusters) takeFormer() []*apply.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.former
	c.former = nil
	return out
}

// connect makes the connections that changed, with a wrapper around each.
func (c *clusters) connect(ctx context.Context, base *rest.Config, wrap transport.WrapperFunc, from secrets, l *landscapev1alpha1.Landscape, options apply.ClusterOptions) error {
	account := l.Spec.ServiceAccountName
	if account != "" {
		account = "system:serviceaccount:" + l.Namespace + ":" + account
	}
	if c.runtime == nil || c.runtimeID != account {
		config := rest.CopyConfig(base)
		config.UserAgent = userAgent
		config.Impersonate = rest.ImpersonationConfig{UserName: account}
		config.Wrap(wrap)
		next, err := conventions.NewCluster(landscape.Runtime, config, options)
		if err != nil {
			return err
		}
		c.left(c.runtime)
		c.runtime, c.runtimeID = next, account
	}
	config, id, err := from.virtual(ctx, l.Spec.Clusters, options)
	if err != nil || id == c.virtualID {
		return err
	}
	var next *apply.Cluster
	if config != nil {
		config.UserAgent = userAgent
		config.Wrap(wrap)
		if next, err = conventions.NewCluster(landscape.Virtual, config, options); err != nil {
			return err
		}
	}
	c.left(c.virtual)
	c.virtual, c.virtualID = next, id
	return nil
}

// byName gives the connections there are.
func (c *clusters) byName() map[string]*apply.Cluster {
	out := map[string]*apply.Cluster{}
	if c.runtime != nil {
		out[landscape.Runtime] = c.runtime
	}
	if c.virtual != nil {
		out[landscape.Virtual] = c.virtual
	}
	return out
}

func (c *clusters) close() {
	c.left(c.runtime)
	c.left(c.virtual)
	c.runtime, c.virtual, c.runtimeID, c.virtualID = nil, nil, "", ""
	for _, cluster := range c.takeFormer() {
		cluster.Close()
	}
}

// userAgent of the operator in requests to clusters.
const userAgent = "pergola-operator"
