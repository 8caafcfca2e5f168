// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
)

// Source is the input of a backup.
type Source struct {
	Landscape *landscapes.Landscape
	// Clusters by name; the runtime cluster is required.
	Clusters map[string]*apply.Cluster
	Clock    clock.PassiveClock
	// Program is the version of this program.
	Program string
	// Revision is the commit of the files; see Landscape.
	Revision string
	Dirty    bool
}

// maxCollectAttempts limits the attempts to read a state that no rotation changes meanwhile.
const maxCollectAttempts = 5

// Collect reads the clusters and writes nothing to them.
func Collect(ctx context.Context, s Source) (*Archive, error) {
	runtime := s.Clusters[landscape.Runtime]
	if runtime == nil {
		return nil, errors.New("a backup needs access to the runtime cluster")
	}
	declared, err := declaredName(s.Landscape)
	if err != nil {
		return nil, err
	}
	for range maxCollectAttempts {
		garden, err := s.readGarden(ctx, declared)
		if err != nil {
			return nil, err
		}
		a, err := s.collect(ctx, garden)
		if err != nil {
			return nil, err
		}
		// Secrets must match the status of the Garden.
		after, err := s.readGarden(ctx, declared)
		if err != nil {
			return nil, err
		}
		if reflect.DeepEqual(gardenOf(garden), gardenOf(after)) {
			return a, nil
		}
	}
	return nil, fmt.Errorf("the credentials of Garden %s changed during each of %d attempts to read them: retry when its rotation has progressed", declared, maxCollectAttempts)
}

func declaredName(l *landscapes.Landscape) (string, error) {
	garden, _, err := l.Garden()
	if err != nil {
		return "", fmt.Errorf("reading the Garden: %w", err)
	}
	if garden == nil {
		return "", errors.New("the landscape declares no Garden: back up the landscape that declares it")
	}
	return garden.Name, nil
}

func (s Source) readGarden(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	garden, err := landscape.LiveGarden(ctx, s.Clusters[landscape.Runtime], name)
	switch {
	case err != nil:
		return nil, err
	case garden == nil:
		return nil, fmt.Errorf("cluster %s has no Garden: there is nothing to back up", landscape.Runtime)
	case garden.GetAnnotations()[landscape.AnnotationRestoreUnfinished] != "":
		return nil, fmt.Errorf("the Garden of cluster %s is being restored, so a backup would be incomplete; continue with pergola restore", landscape.Runtime)
	}
	return garden, nil
}

func gardenOf(live *unstructured.Unstructured) Garden {
	out := Garden{Name: live.GetName(), UID: landscape.ExternalUID(live)}
	out.ClusterIdentity, _, _ = unstructured.NestedString(live.Object, "spec", "virtualCluster", "gardener", "clusterIdentity")
	out.Credentials, _, _ = unstructured.NestedMap(live.Object, "status", "credentials")
	return out
}

func (s Source) collect(ctx context.Context, garden *unstructured.Unstructured) (*Archive, error) {
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return nil, fmt.Errorf("reading random bytes: %w", err)
	}
	now := s.Clock.Now().UTC()
	a := &Archive{Manifest: Manifest{
		Format: Format, Version: Version, ID: now.Format("20060102t150405") + "-" + hex.EncodeToString(id)[:8], Created: now, Program: s.Program, Catalogue: components.Version,
		Landscape: Landscape{Name: s.Landscape.Config.Name, Revision: s.Revision, Dirty: s.Dirty}, Garden: gardenOf(garden),
	}}
	known := map[string]string{} // cluster names by UID
	for _, name := range clusterNames(s.Clusters) {
		uid, err := clusterUID(ctx, s.Clusters[name])
		if err != nil {
			return nil, err
		}
		a.Manifest.Clusters = append(a.Manifest.Clusters, Cluster{Name: name, UID: uid, SameAs: known[uid]})
		if known[uid] != "" {
			continue
		}
		known[uid] = name
		found, err := s.collectCluster(ctx, name, garden)
		if err != nil {
			return nil, err
		}
		a.Entries = append(a.Entries, found...)
	}
	if len(a.EntriesOf(landscape.Runtime)) == 0 {
		return nil, fmt.Errorf("cluster %s has a Garden and no generated Secrets: there is nothing to back up yet", landscape.Runtime)
	}
	return a, nil
}

// clusterNames returns the sorted names, the runtime cluster first.
func clusterNames[T any](clusters map[string]T) []string {
	var out []string
	for name := range clusters {
		if name != landscape.Virtual { // its data is in etcd
			out = append(out, name)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if (a == landscape.Runtime) != (b == landscape.Runtime) {
			if a == landscape.Runtime {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return out
}

// collectCluster reads one cluster.
func (s Source) collectCluster(ctx context.Context, name string, garden *unstructured.Unstructured) ([]*Entry, error) {
	l, err := newLister(s.Clusters[name])
	if err != nil {
		return nil, err
	}
	out, err := l.generatedEntries(ctx)
	if err != nil {
		return nil, err
	}
	certificates, err := l.wildcardEntries(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, certificates...)
	if name == landscape.Runtime {
		referred := landscape.ReferencedNames(garden)
		if err := l.addLandscapeReferences(ctx, referred); err != nil {
			return nil, err
		}
		found, err := l.referencedEntries(ctx, referred)
		if err != nil {
			return nil, err
		}
		recorded, err := l.operationRecords(ctx)
		if err != nil {
			return nil, err
		}
		out = append(append(out, found...), recorded...)
	}
	return withoutDuplicates(out, s.declaredNames(name)), nil
}

// declaredNames returns the Secrets and ConfigMaps of namespace garden that Git declares.
func (s Source) declaredNames(cluster string) map[string]bool {
	out := map[string]bool{}
	if cluster != landscape.Runtime {
		return out
	}
	for i := range s.Landscape.Declarations {
		d := &s.Landscape.Declarations[i]
		if kind := d.GroupVersionKind(); kind.Group == "" && d.Object().GetNamespace() == owner.InventoryNamespace {
			out[kind.Kind+" "+d.Object().GetName()] = true
		}
	}
	return out
}

// withoutDuplicates removes duplicates and referenced objects that Git declares.
func withoutDuplicates(entries []*Entry, declared map[string]bool) []*Entry {
	seen := map[string]bool{}
	var out []*Entry
	for _, e := range entries {
		key := e.Item.path()
		if seen[key] || e.Item.Origin == OriginReferenced && declared[e.Item.Kind+" "+e.Item.Name] {
			continue
		}
		seen[key] = true
		out = append(out, e)
	}
	return out
}
