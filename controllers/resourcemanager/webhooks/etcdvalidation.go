// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	druidv1alpha1 "github.com/pergola-dev/pergola/api/druid/v1alpha1"
)

// respondToEtcd validates the Etcd of a request.
func respondToEtcd(request *admissionv1.AdmissionRequest) (ctrladmission.Response, error) {
	if request.SubResource != "" {
		return ctrladmission.Allowed(""), nil
	}
	etcd, old := &druidv1alpha1.Etcd{}, (*druidv1alpha1.Etcd)(nil)
	if err := utiljson.Unmarshal(request.Object.Raw, etcd); err != nil {
		return ctrladmission.Response{}, denyBadRequest("the Etcd of the request cannot be read: %v", err)
	}
	if request.Operation == admissionv1.Update {
		old = &druidv1alpha1.Etcd{}
		if err := utiljson.Unmarshal(request.OldObject.Raw, old); err != nil {
			return ctrladmission.Response{}, denyBadRequest("the old Etcd of the request cannot be read: %v", err)
		}
	}
	if etcd.Namespace == "" {
		etcd.Namespace = request.Namespace
	}
	errs := validateEtcd(etcd, old)
	if len(errs) == 0 {
		return ctrladmission.Allowed(""), nil
	}
	status := apierrors.NewInvalid(schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}, etcd.Name, errs).Status()
	return ctrladmission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}, nil
}

// validateEtcd has the rules of etcd-druid (api/validation) that its definition lacks: the prefix
// of the backups names the Etcd and never changes. The spec of a terminating Etcd must not change;
// all other rules are skipped, because its finalizers must be removable.
func validateEtcd(etcd, old *druidv1alpha1.Etcd) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if old != nil && etcd.DeletionTimestamp != nil {
		if !equality.Semantic.DeepEqual(etcd.Spec, old.Spec) {
			errs = append(errs, field.Forbidden(spec, "must not change, because the Etcd is being deleted"))
		}
		return errs
	}
	store := etcd.Spec.Backup.Store
	if store == nil {
		return nil
	}
	prefix := spec.Child("backup", "store", "prefix")
	if !strings.Contains(store.Prefix, etcd.Namespace) || !strings.Contains(store.Prefix, etcd.Name) {
		errs = append(errs, field.Invalid(prefix, store.Prefix, "must contain namespace and name of the Etcd, so that it is unique"))
	}
	if old != nil && old.Spec.Backup.Store != nil && old.Spec.Backup.Store.Prefix != store.Prefix {
		errs = append(errs, field.Invalid(prefix, store.Prefix, "must not change: the backups are under the old prefix"))
	}
	return errs
}
