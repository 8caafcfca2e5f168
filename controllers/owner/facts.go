package owner

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

// ensureNamespace makes sure that secrets and inventories have a place before the flow starts. The
// bundle that owns the namespace gives it its labels later.
func (r *run) ensureNamespace(ctx context.Context) error {
	for _, name := range []string{InventoryNamespace, r.owner.Input.Owner.ControlPlaneNamespace} {
		ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
		if _, err := r.owner.Local.Get(ctx, ref); err == nil {
			continue
		}
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		}}
		_, err := r.owner.Local.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
			Create(ctx, obj, metav1.CreateOptions{FieldManager: FieldManager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s on cluster %s: %w", name, r.owner.Local.Name(), err)
		}
	}
	return nil
}

// facts are gathered anew for every reconciliation.
func (r *Reconciler) facts(ctx context.Context, o *Owner) (render.Facts, error) {
	facts := render.Facts{Clusters: map[string]render.ClusterFact{}, Secrets: map[string]render.SecretFact{}}
	version, err := serverVersion(ctx, o.Local)
	if err != nil {
		return facts, err
	}
	role := render.ClusterSeed
	if o.Input.Owner.Kind == Garden {
		role = render.ClusterRuntime
	}
	facts.Clusters[role] = render.ClusterFact{KubernetesVersion: version}
	facts.Extensions, err = r.extensionFacts(ctx, o)
	return facts, err
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

// extensionFacts holds the status of the shoot's extension objects.
func (r *Reconciler) extensionFacts(ctx context.Context, o *Owner) (map[string]map[string]any, error) {
	if o.Input.Owner.Kind != Shoot {
		return nil, nil
	}
	out := map[string]map[string]any{}
	for _, kind := range extensionKinds {
		gvk := schema.GroupVersionKind{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: kind}
		list, err := o.Local.List(ctx, gvk, o.Input.Owner.ControlPlaneNamespace, labels.Everything())
		var noMatch *meta.NoKindMatchError
		if errors.As(err, &noMatch) || meta.IsNoMatchError(err) || apply.ReasonOf(err) == "NoKind" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s objects of %s on %s: %w", kind, o, o.Local.Name(), err)
		}
		for _, obj := range list {
			if status, ok, _ := unstructured.NestedMap(obj.Object, "status"); ok {
				out[strings.ToLower(kind)+"/"+obj.GetName()] = status
			}
		}
	}
	return out, nil
}

// secrets generates what the components ask for and adds the names to the facts.
func (r *Reconciler) secrets(ctx context.Context, o *Owner, facts *render.Facts) (*secrets.Manager, error) {
	in := o.Input
	in.Facts = *facts
	result, err := render.Render(in, r.Render)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", o, err)
	}
	requests, err := result.Secrets()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	configs, err := secrets.ParseRequests(o.Input.Owner.Kind, requests)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	client, err := kubernetes.NewForConfig(o.Local.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	options := []secrets.Option{}
	if kinds[o.Input.Owner.Kind].staticCANames {
		options = append(options, secrets.WithStaticCANames())
	}
	manager := secrets.New(secrets.NewStore(client), o.Input.Owner.ControlPlaneNamespace, kinds[o.Input.Owner.Kind].identity, r.Clock, options...)
	if _, err := manager.GenerateAll(ctx, configs); err != nil {
		return nil, fmt.Errorf("generate the secrets of %s on %s: %w", o, o.Local.Name(), err)
	}
	for name, fact := range manager.Facts() {
		facts.Secrets[name] = render.SecretFact{Name: fact.Name, Checksum: fact.Checksum, Bundle: fact.Bundle, CABundle: fact.CABundle, PublicKey: fact.PublicKey}
	}
	return manager, nil
}

func apiServerHealthy(ctx context.Context, c *apply.Cluster) error {
	client, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	_, err = client.RESTClient().Get().AbsPath("/healthz").DoRaw(ctx)
	return err
}

// encodePublic is the form in which facts carry certificates and public keys.
func encodePublic(data []byte) string {
	return base64.StdEncoding.EncodeToString(data)
}
