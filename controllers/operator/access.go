// SPDX-License-Identifier: Apache-2.0

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

// secretReader reads Secrets one by one, because the operator may not list them.
type secretReader struct {
	client    client.Reader
	namespace string
	// virtualAddress returns the address of the virtual garden for a process outside the runtime
	// cluster. It is nil inside.
	virtualAddress func(context.Context) (string, error)
}

// dataOf returns the data of a Secret in the Landscape's namespace. field is the referring field.
func (s secretReader) dataOf(ctx context.Context, ref *landscapev1alpha1.LocalSecretReference, field string) (map[string][]byte, error) {
	if ref == nil {
		return nil, nil
	}
	return s.read(ctx, client.ObjectKey{Namespace: s.namespace, Name: ref.Name}, field)
}

func (s secretReader) read(ctx context.Context, key client.ObjectKey, field string) (map[string][]byte, error) {
	secret := &corev1.Secret{}
	err := s.client.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s: Secret %s does not exist: %w", field, key, err)
	case err != nil:
		return nil, fmt.Errorf("%s: reading Secret %s: %w", field, key, err)
	}
	return secret.Data, nil
}

// ageIdentities returns the age keys of the decryption Secret.
func (s secretReader) ageIdentities(ctx context.Context, d *landscapev1alpha1.Decryption) ([]age.Identity, error) {
	if d == nil {
		return nil, nil
	}
	const field = "spec.decryption.secretRef"
	data, err := s.dataOf(ctx, &d.SecretRef, field)
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

// checkDecrypted returns an error if no key decrypts some of the Secrets of a revision. The
// revision then cannot be applied, and the previous one stays.
func checkDecrypted(object *landscapev1alpha1.Landscape, r *revision) error {
	var names []string
	for ref := range landscape.UndecryptableSecrets(r.landscape) {
		names = append(names, ref.String())
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	hint := "set spec.decryption.secretRef"
	if d := object.Spec.Decryption; d != nil {
		hint = fmt.Sprintf("add a matching age key to Secret %s (spec.decryption.secretRef), under a key that ends in %s", d.SecretRef.Name, suffixAgeKey)
	}
	return fmt.Errorf("revision %s: %s: %s: %s", r.Revision(), landscape.MissingKeyText(r.landscape), joinWithLimit(names), hint)
}

// virtualAccess returns the access to the virtual garden and a text that changes with it, or nil
// for no access. Without a secretRef it is derived from the Garden in the runtime cluster, only for
// Landscapes in the Garden's namespace.
func (s secretReader) virtualAccess(ctx context.Context, clusters *landscapev1alpha1.Clusters, options apply.ClusterOptions) (*rest.Config, string, error) {
	if clusters == nil || clusters.Virtual == nil || clusters.Virtual.SecretRef == nil {
		if s.namespace != access.GardenNamespace {
			return nil, "", nil
		}
		return access.LazyConfig(s.virtualAccessSource(options)), "derived", nil
	}
	const field = "spec.clusters.virtual.secretRef"
	ref := clusters.Virtual.SecretRef
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if key.Namespace == "" {
		key.Namespace = s.namespace
	}
	if key.Namespace != s.namespace && s.namespace != access.GardenNamespace {
		return nil, "", fmt.Errorf("%s: namespace %s: only Landscapes in namespace %s may name Secrets of other namespaces", field, key.Namespace, access.GardenNamespace)
	}
	data, err := s.read(ctx, key, field)
	if err != nil {
		return nil, "", err
	}
	entry := ref.Key
	if entry == "" {
		entry = access.KubeconfigKey
	}
	if len(data[entry]) == 0 {
		return nil, "", fmt.Errorf("%s: Secret %s has no key %s", field, key, entry)
	}
	config, err := access.ParseKubeconfig(data[entry])
	if err != nil {
		return nil, "", fmt.Errorf("access to the virtual garden: %w", err)
	}
	sum := sha256.Sum256(data[entry])
	return config, hex.EncodeToString(sum[:]), nil
}

// virtualAccessSource reads the access to the virtual garden as the operator itself, not as the
// ServiceAccount of the Landscape.
func (s secretReader) virtualAccessSource(options apply.ClusterOptions) access.Source {
	read := func(ctx context.Context, key types.NamespacedName) (*corev1.Secret, error) {
		secret := &corev1.Secret{}
		return secret, s.client.Get(ctx, key, secret)
	}
	out := access.VirtualGardenSource(read, options.Clock)
	out.ExternalURL = s.virtualAddress
	return out
}

// clusterConnections holds the connections of a Landscape. A connection and its caches stay until
// the access changes.
type clusterConnections struct {
	runtime, virtual *apply.Cluster
	// runtimeID and virtualID identify the access that the connections use.
	runtimeID, virtualID string

	mu sync.Mutex
	// replaced are replaced connections. Running work may still use them.
	replaced []*apply.Cluster
}

// addReplaced records a replaced connection; nil is ignored.
func (c *clusterConnections) addReplaced(former *apply.Cluster) {
	if former != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.replaced = append(c.replaced, former)
	}
}

// takeReplaced hands the replaced connections to the caller, which closes them once they are
// unused.
func (c *clusterConnections) takeReplaced() []*apply.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.replaced
	c.replaced = nil
	return out
}

// connectChanged creates the connections whose access changed. Each gets the wrapper.
func (c *clusterConnections) connectChanged(ctx context.Context, base *rest.Config, wrap transport.WrapperFunc, from secretReader, l *landscapev1alpha1.Landscape, options apply.ClusterOptions) error {
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
		c.addReplaced(c.runtime)
		c.runtime, c.runtimeID = next, account
	}
	config, id, err := from.virtualAccess(ctx, l.Spec.Clusters, options)
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
	c.addReplaced(c.virtual)
	c.virtual, c.virtualID = next, id
	return nil
}

// byName returns the existing connections by cluster name.
func (c *clusterConnections) byName() map[string]*apply.Cluster {
	out := map[string]*apply.Cluster{}
	if c.runtime != nil {
		out[landscape.Runtime] = c.runtime
	}
	if c.virtual != nil {
		out[landscape.Virtual] = c.virtual
	}
	return out
}

func (c *clusterConnections) close() {
	c.addReplaced(c.runtime)
	c.addReplaced(c.virtual)
	c.runtime, c.virtual, c.runtimeID, c.virtualID = nil, nil, "", ""
	for _, cluster := range c.takeReplaced() {
		cluster.Close()
	}
}

// userAgent is the operator's user agent in requests to clusters.
const userAgent = "pergola-operator"
