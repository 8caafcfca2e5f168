package owner

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/render"
)

// publishAccess gives the access to the API server of an owner, which the secrets manager has made, the name by which it is found.
func (r *run) publishAccess(ctx context.Context, made map[string]render.SecretFact) error {
	fact, asked := made[access.SecretName]
	if target := r.owner.Target; !asked || r.owner.Input.Owner.Kind == Garden && target != nil && !access.IsLate(target.RESTConfig()) {
		return nil // what is given by somebody may well be in a Secret of this name
	}
	local, namespace := r.owner.Local, r.owner.Input.Owner.ControlPlaneNamespace
	client, err := kubernetes.NewForConfig(local.RESTConfig())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", local.Name(), err)
	}
	ref := apply.Ref{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: access.SecretName}
	return local.Explain(ref, "write the access to the API server of "+r.owner.String()+" to", access.Publish(ctx, client, namespace, fact.Name))
}
