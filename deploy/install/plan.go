// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/permit"
	"github.com/pergola-dev/pergola/deploy"
)

// Plan returns the actions of Apply and the held deletions with the ids that approve them. It
// writes nothing.
func (i *Installer) Plan(ctx context.Context, in *deploy.Installation) (change.Plan, error) {
	p := groupObjects(in)
	var out change.Plan
	create := func(ref apply.Ref) {
		out.Items = append(out.Items, change.Item{Cluster: i.options.Cluster.Name(), Object: ref, Action: change.Create})
	}
	missing := map[string]bool{}
	var problems []error
	for _, o := range append(i.requiredNamespaces(p.removable), p.priorityClasses...) {
		switch there, err := i.exists(ctx, apply.RefOf(o)); {
		case err != nil:
			problems = append(problems, err)
		case there:
			out.Unchanged++
		default:
			missing[o.GetName()] = o.GetKind() == "Namespace"
			create(apply.RefOf(o))
		}
	}
	for _, kept := range []bool{true, false} {
		var asked []*unstructured.Unstructured
		for _, o := range map[bool][]*unstructured.Unstructured{true: p.retained, false: p.removable}[kept] {
			if missing[o.GetNamespace()] {
				// the API server cannot compare objects in a missing namespace
				create(apply.RefOf(o))
				continue
			}
			asked = append(asked, o)
		}
		if len(asked) == 0 {
			continue
		}
		s, inventory := i.objectSet(asked, kept)
		options, err := i.gatedOptions(ctx, inventory, kept)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		compared, err := i.engine.Plan(ctx, i.options.Cluster, s, inventory, options)
		for n, item := range compared.Items {
			if item.Action == change.Hold {
				compared.Items[n].Approval = permit.ApprovalID(item.Cluster, item.Object)
			}
		}
		out.Items = append(out.Items, compared.Items...)
		out.Unchanged += compared.Unchanged
		if err != nil {
			problems = append(problems, err)
		}
	}
	return out, errors.Join(problems...)
}

// PlanDelete returns the actions of Delete. It writes nothing.
func (i *Installer) PlanDelete(ctx context.Context) (change.Plan, error) {
	s, inventory := i.objectSet(nil, false)
	return i.engine.PlanDelete(ctx, i.options.Cluster, s, inventory, apply.DeleteOptions{KeepCRDs: true})
}

func (i *Installer) exists(ctx context.Context, ref apply.Ref) (bool, error) {
	_, err := i.options.Cluster.GetLive(ctx, ref)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, i.options.Cluster.Explain(ref, "read", err)
}
