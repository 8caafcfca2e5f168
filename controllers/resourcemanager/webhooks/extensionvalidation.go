// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	druidv1alpha1 "github.com/pergola-dev/pergola/api/druid/v1alpha1"
	extensionsv1alpha1 "github.com/pergola-dev/pergola/api/extensions/v1alpha1"
)

// validatedKind is a kind whose objects are validated, at its own path.
type validatedKind struct {
	metav1.GroupVersionKind
	resource string
}

// path returns the path that controller-runtime, and thus upstream, derives from a kind.
func (k validatedKind) path() string {
	return "/validate-" + strings.ReplaceAll(k.Group, ".", "-") + "-" + k.Version + "-" + strings.ToLower(k.Kind)
}

// validatedKinds are Etcd and all extension kinds except Cluster, sorted by resource.
func validatedKinds() []validatedKind {
	kind := func(gv, kind, resource string) validatedKind {
		group, version, _ := strings.Cut(gv, "/")
		return validatedKind{metav1.GroupVersionKind{Group: group, Version: version, Kind: kind}, resource}
	}
	extensions, druid := extensionsv1alpha1.SchemeGroupVersion.String(), druidv1alpha1.SchemeGroupVersion.String()
	return []validatedKind{
		kind(extensions, "BackupBucket", "backupbuckets"),
		kind(extensions, "BackupEntry", "backupentries"),
		kind(extensions, "Bastion", "bastions"),
		kind(extensions, "ContainerRuntime", "containerruntimes"),
		kind(extensions, "ControlPlane", "controlplanes"),
		kind(extensions, "DNSRecord", "dnsrecords"),
		kind(druid, "Etcd", "etcds"),
		kind(extensions, "Extension", "extensions"),
		kind(extensions, "Infrastructure", "infrastructures"),
		kind(extensions, "Network", "networks"),
		kind(extensions, "OperatingSystemConfig", "operatingsystemconfigs"),
		kind(extensions, "SelfHostedShootExposure", "selfhostedshootexposures"),
		kind(extensions, "Worker", "workers"),
	}
}

// newValidating turns the rules for a kind into a webhook.
func newValidating(kind validatedKind, rules func(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) webhookFunc {
	return func(ctx context.Context, request *admissionv1.AdmissionRequest) (ctrladmission.Response, error) {
		switch {
		case request.Kind != kind.GroupVersionKind:
			return ctrladmission.Response{}, denyKind(request, kind.Kind)
		case request.Operation != admissionv1.Create && request.Operation != admissionv1.Update:
			return ctrladmission.Allowed(""), nil
		case kind.Group == druidv1alpha1.SchemeGroupVersion.Group:
			return respondToEtcd(request)
		}
		return ctrladmission.Response{AdmissionResponse: *rules(ctx, request)}, nil
	}
}
