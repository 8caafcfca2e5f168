// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	securityv1alpha1 "github.com/pergola-dev/pergola/api/security/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

const (
	// credentialsSecretName is the Secret that extensions use (upstream's name, and the value of
	// its label).
	credentialsSecretName = "cloudprovider"
	labelPurpose          = "gardener.cloud/purpose"
)

// bindingVersions maps the kinds of bindings to their API versions.
var bindingVersions = map[string]string{
	"CredentialsBinding": securityv1alpha1.SchemeGroupVersion.String(), "SecretBinding": gardencorev1beta1.SchemeGroupVersion.String(),
}

// objectGetter returns an object, or nil if it does not exist.
type objectGetter func(apply.Ref) (*unstructured.Unstructured, error)

// clusterGetter reads from a cluster. An API that is not served has no objects.
func clusterGetter(in *apply.Cluster, get objectGetter) objectGetter {
	return func(ref apply.Ref) (*unstructured.Unstructured, error) {
		live, err := get(ref)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return nil, nil
		}
		if err != nil {
			return nil, in.Explain(ref, "read", err)
		}
		return live, nil
	}
}

// findCredentials follows the binding of a Shoot to its Secret. The result is false for an owner
// without a binding. cluster is only for error messages.
func findCredentials(of render.Input, cluster string, read objectGetter) (LookupResult, bool, error) {
	r, has := of.Credentials()
	if !has {
		return LookupResult{}, false, nil
	}
	found := LookupResult{ConfigReference: r, Namespace: of.ReferenceNamespace(), Credentials: true}
	at := apply.Ref{APIVersion: bindingVersions[r.Kind], Kind: r.Kind, Namespace: found.Namespace, Name: r.Name}
	binding, err := read(at)
	if err != nil {
		return LookupResult{}, false, fmt.Errorf("read the credentials that %s leads to: %w", r.Fields[0], err)
	}
	if binding == nil {
		found.Problem = notFoundError(at, cluster, r.Fields)
		return found, true, nil
	}
	field, kind, namespace, name := crosscheck.BindingCredentials(binding.Object)
	found.ConfigReference, found.Namespace = crosscheck.ConfigReference{Kind: kind.Kind, Name: name, Fields: r.Fields}, namespace
	said := fmt.Sprintf("%s %s/%s in cluster %s refers to %s %s/%s (%s)", r.Kind, at.Namespace, r.Name, cluster, kind.Kind, namespace, name, field)
	switch {
	case kind.Group != "" || kind.Kind != "Secret":
		found.Problem = fmt.Errorf("%s; Pergola passes only Secrets to extensions: refer to a Secret", said)
		return found, true, nil
	case namespace != at.Namespace && of.GardenAPI != landscapev1alpha1.GardenAPIAggregated:
		found.Problem = fmt.Errorf("%s, in another namespace; only gardener-apiserver (spec.gardenAPI: %s) checks that the author of a binding may read it: refer to a Secret in namespace %s",
			said, landscapev1alpha1.GardenAPIAggregated, at.Namespace)
		return found, true, nil
	}
	ref := apply.Ref{APIVersion: "v1", Kind: kind.Kind, Namespace: namespace, Name: name}
	if found.Object, err = read(ref); err != nil {
		return LookupResult{}, false, fmt.Errorf("read the credentials that %s leads to: %w", r.Fields[0], err)
	}
	if found.Object == nil {
		found.Problem = notFoundError(ref, cluster, []string{field + " of " + r.Kind + " " + at.Namespace + "/" + r.Name})
	}
	return found, true, nil
}

func notFoundError(ref apply.Ref, cluster string, fields []string) error {
	return fmt.Errorf("object not found: %s %s/%s in cluster %s (%s)", ref.Kind, ref.Namespace, ref.Name, cluster, strings.Join(fields, ", "))
}

// copyOfCredentials has upstream's name and label, by which webhooks of extensions find it.
func copyOfCredentials(original *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque"}}
	if data, has := original.Object["data"]; has {
		out.Object["data"] = data
	}
	out = out.DeepCopy()
	out.SetName(credentialsSecretName)
	out.SetNamespace(namespace)
	out.SetLabels(map[string]string{labelPurpose: credentialsSecretName, LabelCopy: "true"})
	return out
}
