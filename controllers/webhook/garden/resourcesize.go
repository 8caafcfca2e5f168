// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/webhook/admission"
)

// resourceSize limits the size of objects, and the number of cluster-scoped ones
// (spec.virtualCluster.gardener.gardenerAdmissionController.resourceAdmissionConfiguration).
func (w *webhooks) resourceSize(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if w.SizeLimits == nil || request.SubResource != "" || request.Operation == admissionv1.Delete || isUnrestricted(request.UserInfo, w.SizeLimits.UnrestrictedSubjects) {
		return allowed()
	}
	resource := request.Resource
	if request.RequestResource != nil { // before the API server converted it
		resource = *request.RequestResource
	}
	i := slices.IndexFunc(w.SizeLimits.Limits, func(l operatorv1alpha1.ResourceLimit) bool { return isLimitFor(l, resource) })
	if i < 0 {
		return allowed()
	}
	limit := w.SizeLimits.Limits[i]
	if limit.Count != nil && request.Namespace == "" && request.Operation == admissionv1.Create {
		there, err := w.Garden.List(ctx, schema.GroupVersionResource(resource), "", "", *limit.Count+1)
		if err != nil {
			return nil, fmt.Errorf("counting %s: %w", resource.Resource, err)
		}
		if int64(len(there)) >= *limit.Count {
			return w.rejectOrLog(request, "the Garden allows at most %d %s (gardenerAdmissionController.resourceAdmissionConfiguration.limits[%d].count)", *limit.Count, resource.Resource, i)
		}
	}
	if limit.Size != nil {
		size, err := authoredSize(request.Object.Raw)
		if err != nil {
			return nil, err
		}
		if limit.Size.CmpInt64(size) < 0 {
			return w.rejectOrLog(request, "%s %s has %d bytes, and the Garden allows %s (gardenerAdmissionController.resourceAdmissionConfiguration.limits[%d].size)", request.Kind.Kind, request.Name, size, limit.Size, i)
		}
	}
	return allowed()
}

func (w *webhooks) rejectOrLog(request *admissionv1.AdmissionRequest, format string, args ...any) (*admissionv1.AdmissionResponse, error) {
	if mode := w.SizeLimits.OperationMode; mode != nil && *mode == operatorv1alpha1.AdmissionModeLog {
		w.Log.Warn("over a limit, but allowed: "+fmt.Sprintf(format, args...), "namespace", request.Namespace, "name", request.Name, "user", request.UserInfo.Username)
		return allowed()
	}
	return forbidden(format, args...)
}

// isLimitFor reports whether a limit applies to a resource.
func isLimitFor(limit operatorv1alpha1.ResourceLimit, resource metav1.GroupVersionResource) bool {
	has := func(all []string, one string) bool {
		return slices.Contains(all, operatorv1alpha1.WildcardAll) || slices.Contains(all, one)
	}
	return has(limit.APIGroups, resource.Group) && has(limit.APIVersions, resource.Version) && has(limit.Resources, resource.Resource)
}

// isUnrestricted reports whether a user is one of the subjects. A ServiceAccount only matches
// subjects of that kind.
func isUnrestricted(who authenticationv1.UserInfo, subjects []rbacv1.Subject) bool {
	namespace, account, isAccount := "", "", false
	if rest, is := strings.CutPrefix(who.Username, "system:serviceaccount:"); is {
		namespace, account, isAccount = strings.Cut(rest, ":")
	}
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return isAccount && s.Namespace == namespace && s.Name == account
		case rbacv1.UserKind:
			return !isAccount && (s.Name == who.Username || s.Name == operatorv1alpha1.WildcardAll)
		case rbacv1.GroupKind:
			return !isAccount && (slices.Contains(who.Groups, s.Name) || s.Name == operatorv1alpha1.WildcardAll)
		}
		return false
	})
}

// authoredSize returns the size of the author's part of an object: without status and managed
// fields.
func authoredSize(raw []byte) (int64, error) {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return 0, admission.BadRequest("the object of the request cannot be read")
	}
	delete(object, "status")
	unstructured.RemoveNestedField(object, "metadata", "managedFields")
	own, err := json.Marshal(object)
	return int64(len(own)), err
}
