// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/owner/facts"
	"github.com/pergola-dev/pergola/secrets"
)

// PlannedSecret is the effect of a reconciliation on one request to the secrets manager.
type PlannedSecret struct {
	// Request is its name, and Object is the name of the Secret.
	Request   string
	Namespace string
	Object    string
	Kind      secrets.Kind
	// IsNew means that the Secret does not exist yet. SourceSecret is the Secret that provides its
	// data, or "" for a generated one.
	IsNew        bool
	SourceSecret string
	// ReplacedSecrets are the older generated Secrets of the same request, which it replaces.
	ReplacedSecrets []string
}

func (r *Reconciler) planSecrets(ctx context.Context, o *ownerSession) ([]PlannedSecret, error) {
	if err := r.readCredentials(ctx, o); err != nil {
		return nil, err
	}
	known, err := r.readFacts(ctx, o)
	if err != nil {
		return nil, err
	}
	if known.References, err = o.useDeclaredReferences(); err != nil {
		return nil, err
	}
	result, err := r.renderWith(ctx, o, known)
	if err != nil {
		return nil, err
	}
	configs, err := secretRequests(o, result)
	if err != nil {
		return nil, err
	}
	namespace := o.Input.Owner.ControlPlaneNamespace
	var trial secrets.Store
	_, found, err := r.generateSecretsIn(ctx, o, result, func(s secrets.Store) secrets.Store {
		trial = secrets.NewDryRunStore(s)
		return trial
	})
	if err != nil {
		return nil, err
	}
	given, before, err := secretsByRequest(ctx, o)
	if err != nil {
		return nil, err
	}
	var out []PlannedSecret
	for _, c := range configs {
		name := found[c.Name].Name
		p := PlannedSecret{Request: c.Name, Namespace: namespace, Object: name, Kind: c.Kind, IsNew: secrets.IsCreatedInDryRun(trial, namespace, name)}
		if p.IsNew {
			p.SourceSecret, p.ReplacedSecrets = given[c.Name], before[c.Name]
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b PlannedSecret) int { return cmp.Compare(a.Request, b.Request) })
	return out, nil
}

// secretsByRequest returns the Secrets beside an owner that are labelled for a request, and the
// generated ones, by the request's name.
func secretsByRequest(ctx context.Context, o *ownerSession) (given map[string]string, before map[string][]string, err error) {
	client, err := kubernetes.NewForConfig(o.Local.RESTConfig())
	if err != nil {
		return nil, nil, fmt.Errorf("cluster %s: %w", o.Local.Name(), err)
	}
	namespace := o.Input.Owner.ControlPlaneNamespace
	list, err := client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, o.Local.Explain(apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace}, "list", err)
	}
	given, before = map[string]string{}, map[string][]string{}
	for i := range list.Items {
		s := &list.Items[i]
		if name := s.Labels[secrets.LabelUseDataForName]; name != "" {
			given[name] = s.Name
		}
		if s.Labels[facts.LabelManagedBy] == "secrets-manager" && s.Labels[facts.LabelBundleFor] == "" && s.Labels[facts.LabelIdentity] == settingsByKind[o.Input.Owner.Kind].secretsManagerIdentity {
			name := s.Labels[facts.LabelName]
			before[name] = append(before[name], s.Name)
		}
	}
	return given, before, nil
}
