package owner

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/references"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

// ensureNamespace makes sure that secrets and inventories have a place before the flow starts. The
// bundle that owns the namespace gives it its labels later.
func (r *run) ensureNamespace(ctx context.Context) error {
	for _, name := range namespaces(r.owner) {
		ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
		if there, err := r.namespace(ctx, r.owner, name); err != nil {
			if apply.ReasonOf(err) == apply.TerminatingNamespace && r.owner.Input.Owner.Kind == Shoot {
				err = errors.Join(err, r.ReleaseLeaving(ctx, r.owner.Local))
			}
			return err
		} else if there {
			continue
		}
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
		}}
		_, err := r.owner.Local.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
			Create(ctx, obj, metav1.CreateOptions{FieldManager: FieldManager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return r.owner.Local.Explain(ref, "create", err)
		}
	}
	return nil
}

// namespaces that have to be there before anything else is made for an owner.
func namespaces(o *Owner) []string {
	return []string{InventoryNamespace, o.Input.Owner.ControlPlaneNamespace}
}

// namespace says whether one of them is there. That it is being deleted is an error, said once here instead of for every
// object that cannot be made in it.
func (r *Reconciler) namespace(ctx context.Context, o *Owner, name string) (there bool, err error) {
	ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
	live, err := o.Local.Get(ctx, ref)
	if err != nil {
		live, err = o.Local.GetLive(ctx, ref)
	}
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, o.Local.Explain(ref, "read", err)
	}
	if e := o.Local.Terminating(live); e != nil {
		return false, e
	}
	return true, nil
}

// facts are gathered anew for every reconciliation: what the cluster is, which secrets there are, what the status
// of extension objects says, and addresses.
func (r *Reconciler) facts(ctx context.Context, o *Owner) (render.Facts, error) {
	facts := render.Facts{Clusters: map[string]render.ClusterFact{}}
	if err := r.readExtensions(ctx, o); err != nil {
		return facts, err
	}
	version, err := serverVersion(ctx, o.Local)
	if err != nil {
		return facts, err
	}
	role := render.ClusterSeed
	if o.Input.Owner.Kind == Garden {
		role = render.ClusterRuntime
	}
	facts.Clusters[role] = render.ClusterFact{KubernetesVersion: version}
	secrets, err := secretsBeside(ctx, o)
	if err != nil {
		return facts, err
	}
	facts.Secrets = existingSecrets(secrets, kinds[o.Input.Owner.Kind].identity)
	if o.Input.Owner.Kind == Garden {
		if facts.WildcardCertificate, err = wildcardCertificate(secrets); err != nil {
			return facts, err
		}
	}
	if err := r.readReferences(ctx, o); err != nil {
		return facts, err
	}
	if facts.References, err = references.Facts(o.now().referenced); err != nil {
		return facts, err
	}
	return r.lateFacts(ctx, o, facts)
}

// lateFacts brings those facts up to date that change while a flow runs.
func (r *Reconciler) lateFacts(ctx context.Context, o *Owner, facts render.Facts) (render.Facts, error) {
	if o.Input.Owner.Kind == Garden {
		return gardenFacts(ctx, o, facts)
	}
	var err error
	if facts.Extensions, err = r.extensionFacts(ctx, o); err != nil {
		return facts, err
	}
	facts.Addresses, err = addressFacts(ctx, o)
	return facts, err
}

// addressed is the Service, in the namespace of the control plane, whose address components of an owner ask for: that by which the control plane of a
// shoot is reached inside of its seed, and that of the server of the Gardener API, which the virtual garden has to know.
var addressed = map[string]string{Garden: "gardener-apiserver", Shoot: "kube-apiserver"}

// addressFacts holds addresses of Services. They are known once the Service was created.
func addressFacts(ctx context.Context, o *Owner) (map[string]string, error) {
	ref := apply.Ref{APIVersion: "v1", Kind: "Service", Namespace: o.Input.Owner.ControlPlaneNamespace, Name: addressed[o.Input.Owner.Kind]}
	if ref.Name == "" {
		return nil, nil
	}
	service, err := o.Local.Get(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, o.Local.Explain(ref, "read", err)
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

// extensionFacts holds the status of the shoot's extension objects.
func (r *Reconciler) extensionFacts(ctx context.Context, o *Owner) (map[string]map[string]any, error) {
	if o.Input.Owner.Kind != Shoot {
		return nil, nil
	}
	out := map[string]map[string]any{}
	for _, kind := range extensionKinds {
		gvk := schema.GroupVersionKind{Group: "extensions.gardener.cloud", Version: "v1alpha1", Kind: kind}
		list, err := o.Local.List(ctx, gvk, o.Input.Owner.ControlPlaneNamespace, labels.Everything())
		if unserved(err) {
			continue
		}
		if err != nil {
			return nil, o.Local.Explain(apply.Ref{APIVersion: gvk.GroupVersion().String(), Kind: kind, Namespace: o.Input.Owner.ControlPlaneNamespace}, "list", err)
		}
		for _, obj := range list {
			if status, ok, _ := unstructured.NestedMap(obj.Object, "status"); ok {
				out[strings.ToLower(kind)+"/"+obj.GetName()] = status
			}
		}
	}
	return out, nil
}

// secrets generates what the components ask for and gives the facts of all of it.
func (r *Reconciler) secrets(ctx context.Context, o *Owner, result render.Result) (*secrets.Manager, map[string]render.SecretFact, error) {
	return r.secretsIn(ctx, o, result, func(s secrets.Store) secrets.Store { return s })
}

// secretsIn is secrets with another store.
func (r *Reconciler) secretsIn(ctx context.Context, o *Owner, result render.Result, in func(secrets.Store) secrets.Store) (*secrets.Manager, map[string]render.SecretFact, error) {
	configs, err := requestsOf(o, result)
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(o.Local.RESTConfig())
	if err != nil {
		return nil, nil, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	configs, times := o.rotated(configs)
	options := []secrets.Option{secrets.WithRotationTimes(times), secrets.WithCAAutoRotation(autoRotated(configs)...)}
	if kinds[o.Input.Owner.Kind].staticCANames {
		options = append(options, secrets.WithStaticCANames())
	}
	manager := secrets.New(in(secrets.NewStore(client)), o.Input.Owner.ControlPlaneNamespace, kinds[o.Input.Owner.Kind].identity, r.Clock, options...)
	if _, err := unheard(ctx, func() ([]secrets.Ref, error) { return manager.GenerateAll(ctx, configs) }); err != nil {
		return nil, nil, fmt.Errorf("generate secrets in namespace %s: %w", o.Input.Owner.ControlPlaneNamespace, o.Local.Explain(apply.Ref{}, "generate secrets", err))
	}
	facts := map[string]render.SecretFact{}
	for name, fact := range manager.Facts() {
		facts[name] = render.SecretFact{Name: fact.Name, Checksum: fact.Checksum, Bundle: fact.Bundle, Old: fact.Old, CABundle: fact.CABundle, PublicKey: fact.PublicKey}
	}
	return manager, facts, nil
}

// requestsOf gives what the components of an owner ask the secrets manager for.
func requestsOf(o *Owner, result render.Result) ([]secrets.Config, error) {
	requests, err := result.Secrets()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	configs, err := secrets.ParseRequests(o.Input.Owner.Kind, requests)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o, err)
	}
	return configs, nil
}

// autoRotated are the CAs that are replaced without asking: those of which is said when the old one does not count any more.
func autoRotated(configs []secrets.Config) []string {
	var out []string
	for _, c := range configs {
		if c.Kind == secrets.KindCA && c.IgnoreOldSecretsAfter != nil {
			out = append(out, c.Name)
		}
	}
	return out
}

// Labels of the secrets manager, upstream's.
const (
	labelSecretName      = "name"
	labelSecretBundleFor = "bundle-for"
	labelSecretIssuedAt  = "issued-at-time"
	labelSecretRole      = "role"
	labelManagedBy       = "managed-by"
	labelManagerIdentity = "manager-identity"
)

// secretsBeside are all that are in the namespace of an owner's control plane.
func secretsBeside(ctx context.Context, o *Owner) ([]corev1.Secret, error) {
	client, err := kubernetes.NewForConfig(o.Local.RESTConfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	list, err := client.CoreV1().Secrets(o.Input.Owner.ControlPlaneNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("read the generated secrets of %s: %w", o, o.Local.Explain(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: o.Input.Owner.ControlPlaneNamespace}, "list", err))
	}
	return list.Items, nil
}

// existingSecrets finds the facts of generated secrets by their labels. A checksum is not among them.
func existingSecrets(list []corev1.Secret, identity string) map[string]render.SecretFact {
	newest, bundles := map[string]*corev1.Secret{}, map[string]*corev1.Secret{}
	for i := range list {
		s := &list[i]
		// What is derived from generated secrets has a role and no manager.
		if role, derived := s.Labels[labelSecretRole]; derived && s.Labels[labelManagedBy] == "" {
			keepNewer(newest, role, s)
			continue
		}
		if s.Labels[labelManagedBy] != "secrets-manager" || s.Labels[labelManagerIdentity] != identity {
			continue
		}
		if of := s.Labels[labelSecretBundleFor]; of != "" {
			keepNewer(bundles, of, s)
		} else {
			keepNewer(newest, s.Labels[labelSecretName], s)
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

// keepNewer prefers the secret that was issued later.
func keepNewer(of map[string]*corev1.Secret, name string, s *corev1.Secret) {
	have := of[name]
	if have == nil || issued(have).Before(issued(s)) {
		of[name] = s
	}
}

func issued(s *corev1.Secret) time.Time {
	if at, err := strconv.ParseInt(s.Labels[labelSecretIssuedAt], 10, 64); err == nil {
		return time.Unix(at, 0)
	}
	return s.CreationTimestamp.Time
}

// sameSecrets compares what rendering sees of the secrets that were asked for; checksums it does not.
func sameSecrets(guessed, made map[string]render.SecretFact) bool {
	for name, fact := range made {
		fact.Checksum = ""
		if guessed[name] != fact {
			return false
		}
	}
	return true
}

func apiServerHealthy(ctx context.Context, c *apply.Cluster) error {
	client, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	_, err = client.RESTClient().Get().AbsPath("/healthz").DoRaw(ctx)
	return err
}
