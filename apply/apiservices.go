// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	apiServiceKind     = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	mutatingWebhooks   = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}
	validatingWebhooks = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}
)

// waitForAPIServices waits for the APIServices of a phase whose kinds are in the set, and records
// new webhooks. These get time to start: their pods may be of the same set.
func (r *setRun) waitForAPIServices(ctx context.Context, phase []*desiredObject) {
	if r.dry {
		return
	}
	waited := false
	for _, d := range phase {
		action := r.outcomes[objectKeyOf(d.ref)].action
		if action == Failed || action == Skipped || action == Ignored {
			continue
		}
		switch d.ref.GroupKind() {
		case mutatingWebhooks, validatingWebhooks:
			if action != Unchanged {
				r.recordWebhooks(d.obj)
			}
		case apiServiceKind:
			if r.isAPINeeded(d.obj) {
				waited = true
				if err := r.waitForCondition(ctx, d, waitCondition{"available", "check the Service that it names and the pods behind it", missingAPIServiceCondition}); err != nil {
					r.recordOutcome(r.failOutcome(d, err))
				}
			}
		}
	}
	if waited {
		r.cluster.ResetMapping()
	}
}

// recordWebhooks records the webhooks of a configuration.
func (r *setRun) recordWebhooks(configuration *unstructured.Unstructured) {
	hooks, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
	for _, h := range hooks {
		if hook, ok := h.(map[string]any); ok {
			if name, ok := hook["name"].(string); ok {
				r.newWebhooks[name] = true
			}
		}
	}
}

// isWebhookStarting reports whether an apply failed because a webhook that this run installed does
// not answer yet.
func (r *setRun) isWebhookStarting(err error) bool {
	status, ok := statusOf(err)
	if !ok {
		return false
	}
	m := webhookPattern.FindStringSubmatch(status.Message)
	return m != nil && r.newWebhooks[m[2]]
}

// isAPINeeded reports whether an object of the set uses the API version of an APIService.
func (r *setRun) isAPINeeded(service *unstructured.Unstructured) bool {
	gv := groupVersionOfAPIService(service)
	for _, d := range r.desired {
		if d.ref.GVK().GroupVersion() == gv && gv.Group != "" {
			return true
		}
	}
	return false
}

func groupVersionOfAPIService(service *unstructured.Unstructured) schema.GroupVersion {
	group, _, _ := unstructured.NestedString(service.Object, "spec", "group")
	version, _, _ := unstructured.NestedString(service.Object, "spec", "version")
	return schema.GroupVersion{Group: group, Version: version}
}

// apiServiceOf returns the APIService of the set that would serve a kind, or nil.
func (r *setRun) apiServiceOf(gvk schema.GroupVersionKind) *desiredObject {
	for _, d := range r.desired {
		if d.ref.GroupKind() == apiServiceKind && groupVersionOfAPIService(d.obj) == gvk.GroupVersion() {
			return d
		}
	}
	return nil
}

// missingAPIServiceCondition returns why an APIService is not available, or "" if it is.
func missingAPIServiceCondition(service *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Available" {
			if m["status"] == "True" {
				return ""
			}
			return fmt.Sprintf("%v: %v", m["reason"], m["message"])
		}
	}
	return "no condition Available yet"
}

// outcomeOfUnservedKind handles an object of an unknown kind that a CustomResourceDefinition or an
// APIService of the set provides.
func (r *setRun) outcomeOfUnservedKind(d *desiredObject, err error) (outcome, bool) {
	if !meta.IsNoMatchError(err) {
		return outcome{}, false
	}
	var bringer *Ref
	if crd := r.crds[d.ref.GroupKind()]; crd != nil {
		ref := RefOf(crd)
		bringer = &ref
	} else if service := r.apiServiceOf(d.ref.GVK()); service != nil {
		bringer = &service.ref
	}
	if bringer == nil {
		return outcome{}, false
	}
	if r.dry {
		return outcome{ref: d.ref, action: Created, message: "its kind is created by this set"}, true
	}
	return r.skipOutcome(d, *bringer), true
}

// webhookRetryInterval is the pause between two requests to a webhook that is starting.
const webhookRetryInterval = 300 * time.Millisecond
