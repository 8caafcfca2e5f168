// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// namespaceDeletionConditions lists the conditions of a namespace that say what its deletion waits
// for.
var namespaceDeletionConditions = []string{"NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
	"NamespaceContentRemaining", "NamespaceFinalizersRemaining"}

// namespaceDeletionBlocker returns what the deletion of a namespace waits for, or "" if its
// conditions do not say.
func namespaceDeletionBlocker(ns *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(ns.Object, "status", "conditions")
	var out []string
	for _, kind := range namespaceDeletionConditions {
		for _, c := range conditions {
			m, _ := c.(map[string]any)
			message, _ := m["message"].(string)
			if m["type"] == kind && m["status"] == "True" && message != "" {
				out = append(out, strings.TrimRight(message, "."))
			}
		}
	}
	return strings.Join(out, "; ")
}

// TerminatingError returns the error for a namespace that is being deleted, in which nothing can be
// created, or nil for any other namespace.
func (c *Cluster) TerminatingError(ns *unstructured.Unstructured) *ObjectError {
	since := ns.GetDeletionTimestamp()
	if since == nil {
		return nil
	}
	return &ObjectError{Cluster: c.name, Object: RefOf(ns), Op: "apply", Reason: ReasonTerminatingNamespace,
		Message: fmt.Sprintf("its deletion began at %s and %s: nothing can be created in it", since.UTC().Format("2006-01-02 15:04:05 MST"), deletionBlocker(ns)),
		Hint:    "let the controllers of its remaining objects finish, or remove their finalizers; run again when the namespace no longer exists"}
}

// mergeNamespaceErrors replaces the errors of objects in a terminating namespace by one error about
// that namespace.
func (r *setRun) mergeNamespaceErrors(ctx context.Context) {
	said := map[string]*ObjectError{}
	for k, o := range r.outcomes {
		if o.err == nil || o.err.Reason != ReasonTerminatingNamespace || o.ref.Namespace == "" {
			continue
		}
		name := o.ref.Namespace
		if _, known := said[name]; !known {
			said[name] = nil
			if ns, err := r.cluster.GetLive(ctx, Ref{APIVersion: "v1", Kind: "Namespace", Name: name}); err == nil {
				said[name] = r.cluster.TerminatingError(ns)
			}
		}
		if e := said[name]; e != nil {
			o.err, o.message = e, "Namespace "+name+": "+e.Message
			r.outcomes[k] = o
		}
	}
}
