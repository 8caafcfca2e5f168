// SPDX-License-Identifier: Apache-2.0

package authorizer

import (
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verbs of requests.
const (
	verbGet    = "get"
	verbList   = "list"
	verbWatch  = "watch"
	verbCreate = "create"
	verbUpdate = "update"
	verbPatch  = "patch"
	verbDelete = "delete"
)

// request is a request to authorize.
type request struct {
	objectKey
	resource, subresource, verb string
	fields                      map[string]string // required values of fields
	labels                      map[string]string // required values of labels
}

func requestOf(a *authorizationv1.ResourceAttributes) request {
	resource := a.Resource
	if a.Group != "" {
		resource += "." + a.Group
	}
	r := request{resource: resource, subresource: a.Subresource, verb: a.Verb, objectKey: objectKey{kind: kindsByResource[resource], namespace: a.Namespace, name: a.Name}}
	if r.kind.isClusterScoped() {
		r.namespace = "" // a request for a namespace names it there, too
	}
	if a.FieldSelector != nil {
		for _, s := range a.FieldSelector.Requirements {
			if s.Operator == metav1.FieldSelectorOpIn && len(s.Values) == 1 {
				r.fields = withEntry(r.fields, s.Key, s.Values[0])
			}
		}
	}
	if a.LabelSelector != nil {
		for _, s := range a.LabelSelector.Requirements {
			if s.Operator == metav1.LabelSelectorOpIn && len(s.Values) == 1 {
				r.labels = withEntry(r.labels, s.Key, s.Values[0])
			}
		}
	}
	return r
}

func withEntry(all map[string]string, key, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

func (r *request) hasVerb(verbs ...string) bool { return slices.Contains(verbs, r.verb) }

// describe describes the object of a request in messages.
func (r *request) describe() string {
	resource := r.resource
	if r.subresource != "" {
		group := ""
		resource, group, _ = strings.Cut(resource, ".")
		resource += "/" + r.subresource
		if group != "" {
			resource += "." + group
		}
	}
	if r.name == "" {
		return resource
	}
	if r.namespace != "" {
		return resource + " " + r.namespace + "/" + r.name
	}
	return resource + " " + r.name
}

// selection contains fields and labels that a list or watch must at least select.
type selection struct{ fields, labels map[string]string }

func (s selection) isSelectedBy(r *request) bool {
	for key, value := range s.fields {
		if r.fields[key] != value {
			return false
		}
	}
	for key, value := range s.labels {
		if r.labels[key] != value {
			return false
		}
	}
	return true
}

func (s selection) String() string {
	var parts []string
	for _, of := range []struct {
		what string
		all  map[string]string
	}{{"field", s.fields}, {"label", s.labels}} {
		for _, key := range sortedKeys(of.all) {
			parts = append(parts, of.what+" "+key+"="+of.all[key])
		}
	}
	return strings.Join(parts, " and ")
}
