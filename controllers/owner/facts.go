// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner/facts"
	"github.com/pergola-dev/pergola/controllers/references"
	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/secrets"
)

// ensureNamespace creates the namespaces for secrets and inventories before the flow starts. The
// bundle that owns the namespace adds its labels later.
func (r *run) ensureNamespace(ctx context.Context) error {
	for _, name := range requiredNamespaces(r.owner) {
		ref := apply.Ref{APIVersion: "v1", Kind: "Namespace", Name: name}
		if there, err := r.reconciler.hasNamespace(ctx, r.owner, name); err != nil {
			if apply.ReasonOf(err) == apply.ReasonTerminatingNamespace && r.owner.Input.Owner.Kind == Shoot {
				err = errors.Join(err, r.reconciler.ReleaseTerminating(ctx, r.owner.Local))
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

// requiredNamespaces returns the namespaces that must exist before all other objects of an owner.
func requiredNamespaces(o *ownerSession) []string {
	return []string{InventoryNamespace, o.Input.Owner.ControlPlaneNamespace}
}

// hasNamespace reports whether a namespace exists. A terminating namespace is an error here, so
// that not every object in it fails.
func (r *Reconciler) hasNamespace(ctx context.Context, o *ownerSession, name string) (there bool, err error) {
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
	if e := o.Local.TerminatingError(live); e != nil {
		return false, e
	}
	return true, nil
}

// readFacts are read for each reconciliation: clusters, secrets, the status of extension objects,
// and addresses.
func (r *Reconciler) readFacts(ctx context.Context, o *ownerSession) (render.Facts, error) {
	if err := r.readExtensions(ctx, o); err != nil {
		return render.Facts{Clusters: map[string]render.ClusterFact{}}, err
	}
	found, err := facts.ReadStatic(ctx, o.factsSource())
	if err != nil {
		return found, err
	}
	if err := r.readReferences(ctx, o); err != nil {
		return found, err
	}
	if found.References, err = references.Facts(o.currentState().references); err != nil {
		return found, err
	}
	return facts.UpdateDynamic(ctx, o.factsSource(), found)
}

// factsSource returns the location of the owner's facts.
func (o *ownerSession) factsSource() facts.Source {
	in := o.inputCopy()
	return facts.Source{
		Owner: in.Owner, Identity: settingsByKind[in.Owner.Kind].secretsManagerIdentity, Garden: in.Objects[Garden], Local: o.Local, Target: o.Target,
		Seeds: o.currentState().seeds, OnSeeds: func(seeds []render.SeedFact) { o.updateState(func(s *State) { s.seeds = seeds }) },
	}
}

// generateSecrets generates the secrets that the components request, and returns their facts.
func (r *Reconciler) generateSecrets(ctx context.Context, o *ownerSession, result render.Result) (*secrets.Manager, map[string]render.SecretFact, error) {
	return r.generateSecretsIn(ctx, o, result, func(s secrets.Store) secrets.Store { return s })
}

// generateSecretsIn is secrets with another store.
func (r *Reconciler) generateSecretsIn(ctx context.Context, o *ownerSession, result render.Result, in func(secrets.Store) secrets.Store) (*secrets.Manager, map[string]render.SecretFact, error) {
	configs, err := secretRequests(o, result)
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(o.Local.RESTConfig())
	if err != nil {
		return nil, nil, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	configs, times := o.rotatedRequests(configs)
	options := []secrets.Option{secrets.WithRotationTimes(times), secrets.WithCAAutoRotation(autoRotatedCAs(configs)...)}
	if settingsByKind[o.Input.Owner.Kind].staticCANames {
		options = append(options, secrets.WithStaticCANames())
	}
	manager := secrets.New(in(secrets.NewStore(client)), o.Input.Owner.ControlPlaneNamespace, settingsByKind[o.Input.Owner.Kind].secretsManagerIdentity, r.Clock, options...)
	if _, err := panics.RunDetached(ctx, func() ([]secrets.Ref, error) { return manager.GenerateAll(ctx, configs) }); err != nil {
		return nil, nil, fmt.Errorf("generate secrets in namespace %s: %w", o.Input.Owner.ControlPlaneNamespace, o.Local.Explain(apply.Ref{}, "generate secrets", err))
	}
	made := map[string]render.SecretFact{}
	for name, fact := range manager.Facts() {
		made[name] = render.SecretFact{Name: fact.Name, Checksum: fact.Checksum, Bundle: fact.Bundle, Predecessor: fact.Predecessor, CABundle: fact.CABundle, PublicKey: fact.PublicKey}
	}
	return manager, made, nil
}

// secretRequests returns the requests of an owner's components to the secrets manager.
func secretRequests(o *ownerSession, result render.Result) ([]secrets.Config, error) {
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

// autoRotatedCAs returns the CAs that are rotated automatically: their requests define when the old
// CA expires.
func autoRotatedCAs(configs []secrets.Config) []string {
	var out []string
	for _, c := range configs {
		if c.Kind == secrets.KindCA && c.IgnoreOldSecretsAfter != nil {
			out = append(out, c.Name)
		}
	}
	return out
}
