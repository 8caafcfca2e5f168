// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const annotationOperation = "gardener.cloud/operation"

// CheckEtcd is the check of the care controllers: ready, and backups not reported as broken
// (pkg/utils/kubernetes/health/etcd.go).
func CheckEtcd(obj *unstructured.Unstructured) error { return toError(checkEtcd(obj)) }

func checkEtcd(obj *unstructured.Unstructured) *Failure {
	if !boolAt(obj, "status", "ready") {
		return etcdNotReady(obj)
	}
	if c, ok := conditionOf(obj, "BackupReady"); ok && c.status == "False" {
		f := failf("the backup of etcd %q is reported as broken: %s", obj.GetName(), c.cause())
		f.Codes = c.codes
		return f
	}
	return nil
}

// CheckEtcdDeployed is the check of a deployment that waits for its Etcd. It requires: no errors,
// no deletion, the latest generation observed, the requested operation accepted, all members
// updated, ready (pkg/component/etcd/etcd/waiter.go). Upstream polls every 5s and fails after 3m on
// severe failures, after 5m on all; see Severe.
func CheckEtcdDeployed(obj *unstructured.Unstructured) error {
	for _, e := range listAt(obj.Object, "status", "lastErrors") {
		return &Failure{Message: "etcd reports an error: " + textAt(e, "description"), Codes: textsAt(e, "codes"), Severe: true}
	}
	if obj.GetDeletionTimestamp() != nil {
		return &Failure{Message: "etcd is being deleted", Waiting: true}
	}
	if seen := intOrZero(obj, "status", "observedGeneration"); seen != generation(obj) {
		return waitf("observed generation outdated (%d/%d)", seen, generation(obj))
	}
	if op, ok := obj.GetAnnotations()[annotationOperation]; ok {
		return waitf("etcd-druid has not started operation %q yet", op)
	}
	if f := checkConditionTrue(obj, "AllMembersUpdated"); f != nil {
		f.Waiting = true
		return f
	}
	if !boolAt(obj, "status", "ready") {
		return etcdNotReady(obj)
	}
	return nil
}

// etcdNotReady returns the False conditions and last errors of an Etcd that is not ready.
func etcdNotReady(obj *unstructured.Unstructured) *Failure {
	var why []string
	for _, c := range conditionsOf(obj) {
		if c.status == "False" && c.cause() != "" {
			why = append(why, c.kind+" is False: "+c.cause())
		}
	}
	for _, e := range listAt(obj.Object, "status", "lastErrors") {
		if text, ok := e["description"].(string); ok && text != "" {
			why = append(why, text)
		}
	}
	if len(why) == 0 {
		return waitf("etcd %q is not ready yet", obj.GetName())
	}
	return waitf("etcd %q is not ready yet: %s", obj.GetName(), strings.Join(why, "; "))
}

// IsSevere reports whether the failure does not end without a change.
func IsSevere(err error) bool {
	var f *Failure
	return errors.As(err, &f) && f.Severe
}
