// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// LookupResult is one reference and its object.
type LookupResult struct {
	crosscheck.ConfigReference
	// Namespace is the namespace of the object; empty means the namespace of the owner's
	// references.
	Namespace string
	// Credentials marks the Secret behind the binding of a Shoot. Fields then name the binding.
	Credentials bool
	// Object is nil if Problem says why it is unusable.
	Object  *unstructured.Unstructured
	Problem error
}

// kindShoot is the kind of owner whose users do not operate the landscape.
const kindShoot = "shoot"

// Read reads the objects that an owner refers to from a cluster. It fails only for errors of the
// cluster; a missing or invalid object is a Problem of its Found.
func Read(ctx context.Context, in *apply.Cluster, of render.Input) ([]LookupResult, error) {
	var out []LookupResult
	namespace := of.ReferenceNamespace()
	for _, r := range of.ControlPlaneReferences() {
		found := LookupResult{ConfigReference: r}
		ref := apply.Ref{APIVersion: "v1", Kind: r.Kind, Namespace: namespace, Name: r.Name}
		live, err := in.GetLive(ctx, ref)
		switch {
		case apierrors.IsNotFound(err):
			found.Problem = notFoundError(ref, in.Name(), r.Fields)
		case err != nil:
			return nil, fmt.Errorf("read the reference in %s: %w", r.Fields[0], in.Explain(ref, "read", err))
		default:
			err := checkContent(r, live)
			if err == nil && of.Owner.Kind == kindShoot {
				err = checkKubeconfig(r, live)
			}
			if err != nil {
				found.Problem = fmt.Errorf("%s %s/%s in cluster %s %w", r.Kind, namespace, r.Name, in.Name(), err)
			} else {
				found.Object = live
			}
		}
		out = append(out, found)
	}
	found, has, err := findCredentials(of, in.Name(), clusterGetter(in, func(ref apply.Ref) (*unstructured.Unstructured, error) { return in.GetLive(ctx, ref) }))
	if has {
		out = append(out, found)
	}
	return out, err
}

// HasReferences reports whether an owner refers to anything.
func HasReferences(of render.Input) bool {
	_, has := of.Credentials()
	return has || len(of.ControlPlaneReferences()) > 0
}

// MissingReferences returns the references as if none of the objects existed, for a cluster that
// does not exist yet.
func MissingReferences(in *apply.Cluster, of render.Input) []LookupResult {
	var out []LookupResult
	for _, r := range of.ControlPlaneReferences() {
		ref := apply.Ref{APIVersion: "v1", Kind: r.Kind, Namespace: of.ReferenceNamespace(), Name: r.Name}
		out = append(out, LookupResult{ConfigReference: r, Problem: notFoundError(ref, in.Name(), r.Fields)})
	}
	if found, has, _ := findCredentials(of, in.Name(), func(apply.Ref) (*unstructured.Unstructured, error) { return nil, nil }); has {
		out = append(out, found)
	}
	return out
}

// JoinProblems joins the problems of all references.
func JoinProblems(found []LookupResult) error {
	var problems []error
	for _, f := range found {
		problems = append(problems, f.Problem)
	}
	return errors.Join(problems...)
}

// checkContent validates the content. It checks only that the keys of a Secret exist, never the
// values.
func checkContent(r crosscheck.ConfigReference, live *unstructured.Unstructured) error {
	data := map[string]string{}
	for _, field := range []string{"data", "binaryData"} {
		values, _, err := unstructured.NestedStringMap(live.Object, field)
		if err != nil {
			return fmt.Errorf("has %s that is not a map of strings", field)
		}
		for key, value := range values {
			switch {
			case r.Kind == "Secret":
				value = ""
			case field == "binaryData":
				raw, err := base64.StdEncoding.DecodeString(value)
				if err != nil {
					return fmt.Errorf("has binaryData[%s] that is not base64", key)
				}
				value = string(raw)
			}
			data[key] = value
		}
	}
	return r.CheckContent(data)
}
