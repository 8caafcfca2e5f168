// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
)

// Kinds of owners with specific facts.
const (
	garden = "garden"
	shoot  = "shoot"
)

// Source is an owner and the location of its facts.
type Source struct {
	Owner render.Owner
	// Identity is the manager-identity label of the owner's generated secrets.
	Identity string
	// Garden is the declaration of a Garden.
	Garden map[string]any
	// Local is the cluster of the components; Target is the API server that they serve; it is nil
	// for none.
	Local, Target *apply.Cluster
	// Seeds are the last known ones of a virtual garden; OnSeeds receives the current ones.
	Seeds   []render.SeedFact
	OnSeeds func([]render.SeedFact)
}

// ReadStatic reads the facts that stay constant while a flow runs: clusters and secrets.
func ReadStatic(ctx context.Context, s Source) (render.Facts, error) {
	facts := render.Facts{Clusters: map[string]render.ClusterFact{}}
	version, err := serverVersion(ctx, s.Local)
	if err != nil {
		return facts, err
	}
	role := render.ClusterSeed
	if s.Owner.Kind == garden {
		role = render.ClusterRuntime
	}
	facts.Clusters[role] = render.ClusterFact{KubernetesVersion: version}
	secrets, err := controlPlaneSecrets(ctx, s)
	if err != nil {
		return facts, err
	}
	facts.Secrets = existingSecrets(secrets, s.Identity)
	if s.Owner.Kind == garden {
		facts.WildcardCertificate, err = wildcardCertificate(secrets)
	}
	return facts, err
}

// addressServices maps a kind of owner to the Service in its control plane namespace whose address
// components need. A shoot's components use the API server inside the seed. The virtual garden uses
// the server of the Gardener API.
var addressServices = map[string]string{garden: "gardener-apiserver", shoot: "kube-apiserver"}

// addressFacts returns addresses of Services, which are known after their creation.
func addressFacts(ctx context.Context, s Source) (map[string]string, error) {
	ref := apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: s.Owner.ControlPlaneNamespace, Name: addressServices[s.Owner.Kind]}
	if ref.Name == "" {
		return nil, nil
	}
	service, err := s.Local.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, s.Local.Explain(ref, "read", err)
	}
	address, _, err := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if err != nil || address == "" || address == "None" {
		return nil, nil
	}
	return map[string]string{ref.Name: address}, nil
}

func serverVersion(ctx context.Context, c *apply.Cluster) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	if err != nil {
		return "", fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	raw, err := client.RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("read the Kubernetes version of cluster %s: %w", c.Name(), c.Explain(apply.Ref{}, "read version", err))
	}
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(raw, &info); err != nil {
		return "", fmt.Errorf("read the Kubernetes version of cluster %s: %w", c.Name(), err)
	}
	version := strings.TrimPrefix(info.GitVersion, "v")
	if i := strings.IndexAny(version, "+-"); i > 0 {
		version = version[:i]
	}
	return version, nil
}

// extensionKinds are read for facts: their status feeds other components.
var extensionKinds = []string{"Infrastructure", "ControlPlane", "Network", "Worker", "OperatingSystemConfig"}

// extensionFacts returns the status of the shoot's extension objects.
func extensionFacts(ctx context.Context, s Source) (map[string]map[string]any, error) {
	if s.Owner.Kind != shoot {
		return nil, nil
	}
	out := map[string]map[string]any{}
	for _, kind := range extensionKinds {
		gvk := schema.GroupVersionKind{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: kind}
		list, err := s.Local.List(ctx, gvk, s.Owner.ControlPlaneNamespace, labels.Everything())
		if apply.IsUnserved(err) {
			continue
		}
		if err != nil {
			return nil, s.Local.Explain(apply.Ref{APIVersion: gvk.GroupVersion().String(), Kind: kind, Namespace: s.Owner.ControlPlaneNamespace}, "list", err)
		}
		for _, obj := range list {
			if status, ok, _ := unstructured.NestedMap(obj.Object, "status"); ok {
				out[strings.ToLower(kind)+"/"+obj.GetName()] = status
			}
		}
	}
	return out, nil
}

// UpdateDynamic updates the facts that change while a flow runs.
func UpdateDynamic(ctx context.Context, s Source, facts render.Facts) (render.Facts, error) {
	if s.Owner.Kind == garden {
		return gardenFacts(ctx, s, facts)
	}
	var err error
	if facts.Extensions, err = extensionFacts(ctx, s); err != nil {
		return facts, err
	}
	facts.Addresses, err = addressFacts(ctx, s)
	return facts, err
}
