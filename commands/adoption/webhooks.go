// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"context"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/controllers/landscape"
)

// webhookKinds are the kinds of webhook configurations.
var webhookKinds = []schema.GroupVersionKind{
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"},
}

// exclusiveWebhooks returns the webhook configurations that only this controller serves.
// Configurations with other servers are ignored.
func (a *Adopter) exclusiveWebhooks(ctx context.Context, c Controller) ([]webhook, error) {
	clusters := []string{c.Cluster}
	if c.Cluster == landscape.Runtime && a.Converger.Cluster(landscape.Virtual) != nil {
		clusters = append(clusters, landscape.Virtual)
	}
	var out []webhook
	for _, cluster := range clusters {
		for _, kind := range webhookKinds {
			found, err := listObjects(ctx, a.Converger.Cluster(cluster), kind, "")
			if err != nil {
				return nil, err
			}
			for i := range found {
				if !isAppliedByPergola(&found[i]) && isServedBy(&found[i], c, cluster == c.Cluster) {
					out = append(out, webhook{cluster, withoutServerFields(&found[i])})
				}
			}
		}
	}
	return out, nil
}

// isServedBy reports whether all webhooks of a configuration point to a controller's Service, by
// reference or by URL.
func isServedBy(configuration *unstructured.Unstructured, c Controller, here bool) bool {
	hooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, raw := range hooks {
		hook, _ := raw.(map[string]any)
		name, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "name")
		namespace, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "namespace")
		address, _, _ := unstructured.NestedString(hook, "clientConfig", "url")
		if here && name == c.Name && namespace == c.Namespace {
			continue
		}
		if at, err := url.Parse(address); address != "" && err == nil && (at.Hostname() == c.Name || strings.HasPrefix(at.Hostname(), c.Name+"."+c.Namespace)) {
			continue
		}
		return false
	}
	return len(hooks) > 0
}

// planWithoutWebhooks changes a plan to the state after the stop: it then contains the changes to
// pods that the webhooks would have reverted.
func (a *Adopter) planWithoutWebhooks(ctx context.Context, p change.Plan) error {
	if !slices.ContainsFunc(p.Items, func(i change.Item) bool { return len(i.WebhookFields) > 0 }) {
		return nil
	}
	found, err := a.controllers(ctx)
	if err != nil {
		return err
	}
	var going []webhook
	for _, c := range found {
		if !c.MustStop {
			continue
		}
		served, err := a.exclusiveWebhooks(ctx, c)
		if err != nil {
			return err
		}
		going = append(going, served...)
	}
	for i, item := range p.Items {
		if len(item.WebhookFields) > 0 && slices.ContainsFunc(going, func(w webhook) bool { return w.Cluster == item.Cluster && isMutating(w.Object, item.Object) }) {
			p.Items[i].Fields = append(slices.Clone(item.Fields), item.WebhookFields...)
		}
	}
	return nil
}

// isMutating reports whether a webhook configuration mutates objects of a kind.
func isMutating(configuration map[string]any, of change.Ref) bool {
	o := &unstructured.Unstructured{Object: configuration}
	if o.GetKind() != "MutatingWebhookConfiguration" {
		return false
	}
	// The resource of workloads is the lowercase plural of their kind.
	group, resource := schema.FromAPIVersionAndKind(of.APIVersion, of.Kind).Group, strings.ToLower(of.Kind)+"s"
	hooks, _, _ := unstructured.NestedSlice(configuration, "webhooks")
	for _, raw := range hooks {
		hook, _ := raw.(map[string]any)
		rules, _, _ := unstructured.NestedSlice(hook, "rules")
		for _, raw := range rules {
			rule, _ := raw.(map[string]any)
			groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			if hasOrWildcard(groups, group) && (hasOrWildcard(resources, resource) || slices.Contains(resources, "*/*")) {
				return true
			}
		}
	}
	return false
}

func hasOrWildcard(all []string, one string) bool {
	return slices.Contains(all, one) || slices.Contains(all, "*")
}

// withoutServerFields returns an object without server fields, so that it can be created again.
func withoutServerFields(o *unstructured.Unstructured) map[string]any {
	out := o.DeepCopy()
	out.SetManagedFields(nil)
	out.SetResourceVersion("")
	out.SetUID("")
	out.SetGeneration(0)
	out.SetOwnerReferences(nil)
	unstructured.RemoveNestedField(out.Object, "metadata", "creationTimestamp")
	return out.Object
}

func isSameObject(a, b map[string]any) bool {
	x, y := &unstructured.Unstructured{Object: a}, &unstructured.Unstructured{Object: b}
	return x.GetKind() == y.GetKind() && x.GetName() == y.GetName()
}

func (a *Adopter) removeWebhooks(ctx context.Context, all []webhook) error {
	for _, w := range all {
		c, o := a.Converger.Cluster(w.Cluster), &unstructured.Unstructured{Object: w.Object}
		mapping, err := c.Mapping(ctx, o.GroupVersionKind())
		if err == nil {
			err = c.Dynamic().Resource(mapping.Resource).Delete(ctx, o.GetName(), metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return c.Explain(apply.RefOf(o), "delete", err)
		}
		if err == nil {
			a.reportStep("%s: deleted %s, which no controller serves now", w.Cluster, apply.RefOf(o))
		}
	}
	return nil
}

func (a *Adopter) restoreWebhooks(ctx context.Context, all []webhook) error {
	for _, w := range all {
		c, o := a.Converger.Cluster(w.Cluster), &unstructured.Unstructured{Object: w.Object}
		mapping, err := c.Mapping(ctx, o.GroupVersionKind())
		if err == nil {
			_, err = c.Dynamic().Resource(mapping.Resource).Create(ctx, o, metav1.CreateOptions{FieldManager: conventions.AdoptionManager})
		}
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return c.Explain(apply.RefOf(o), "create", err)
		}
		if err == nil {
			a.reportStep("%s: restored %s", w.Cluster, apply.RefOf(o))
		}
	}
	return nil
}
