// SPDX-License-Identifier: Apache-2.0

package strict

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/api/service"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	admissionregistrationvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	autoscalingvalidation "k8s.io/kubernetes/pkg/apis/autoscaling/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/certificates"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	certificatesvalidation "k8s.io/kubernetes/pkg/apis/certificates/validation"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	coordinationvalidation "k8s.io/kubernetes/pkg/apis/coordination/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	discoveryvalidation "k8s.io/kubernetes/pkg/apis/discovery/validation"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	flowcontrolvalidation "k8s.io/kubernetes/pkg/apis/flowcontrol/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	nodevalidation "k8s.io/kubernetes/pkg/apis/node/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	schedulingvalidation "k8s.io/kubernetes/pkg/apis/scheduling/validation"
	"k8s.io/kubernetes/pkg/apis/storage"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	storagevalidation "k8s.io/kubernetes/pkg/apis/storage/validation"
	"k8s.io/kubernetes/pkg/capabilities"

	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// validators are kube-apiserver's checks of a created object, with the options of the strategies in
// k8s.io/kubernetes/pkg/registry. They take the internal version, to which every served version is
// converted.
var validators = map[reflect.Type]func(runtime.Object) field.ErrorList{}

func registerValidator[T runtime.Object](check func(T) field.ErrorList) {
	validators[reflect.TypeFor[T]()] = func(o runtime.Object) field.ErrorList { return check(o.(T)) }
}

// SymbolicMark is part of every placeholder for an unknown fact. Errors about such values are
// ignored, because actual values replace them.
const SymbolicMark = "XXXXXXXX"

func init() {
	// like --allow-privileged of kube-apiserver, which a landscape's clusters need
	capabilities.Setup(true, 0)
	registerValidator(corevalidation.ValidateConfigMap)
	registerValidator(corevalidation.ValidateSecret)
	registerValidator(corevalidation.ValidateNamespace)
	registerValidator(corevalidation.ValidateNode)
	registerValidator(corevalidation.ValidateServiceAccount)
	registerValidator(func(o *core.Service) field.ErrorList {
		// The server sets these before.
		if len(o.Spec.ClusterIPs) == 0 && o.Spec.ClusterIP != "" {
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
		if o.Spec.HealthCheckNodePort == 0 && service.NeedsHealthCheck(o) {
			o.Spec.HealthCheckNodePort = 30000
		}
		return corevalidation.ValidateServiceCreate(o)
	})
	registerValidator(corevalidation.ValidateEndpointsCreate)
	registerValidator(corevalidation.ValidateLimitRange)
	registerValidator(corevalidation.ValidateResourceQuota)
	registerValidator(func(o *core.PersistentVolume) field.ErrorList {
		return corevalidation.ValidatePersistentVolume(o, corevalidation.ValidationOptionsForPersistentVolume(o, nil))
	})
	registerValidator(func(o *core.PersistentVolumeClaim) field.ErrorList {
		return corevalidation.ValidatePersistentVolumeClaim(o, corevalidation.ValidationOptionsForPersistentVolumeClaim(o, nil))
	})
	registerValidator(func(o *core.Pod) field.ErrorList {
		options := podutil.GetValidationOptionsFromPodSpecAndMeta(&o.Spec, nil, &o.ObjectMeta, nil)
		options.ResourceIsPod = true
		return corevalidation.ValidatePodCreate(o, options)
	})
	registerValidator(func(o *core.PodTemplate) field.ErrorList {
		return corevalidation.ValidatePodTemplate(o, podValidationOptions(&o.Template))
	})
	registerValidator(func(o *core.ReplicationController) field.ErrorList {
		return corevalidation.ValidateReplicationController(o, podValidationOptions(o.Spec.Template))
	})
	registerValidator(func(o *apps.Deployment) field.ErrorList {
		return appsvalidation.ValidateDeployment(o, podValidationOptions(&o.Spec.Template))
	})
	registerValidator(func(o *apps.ReplicaSet) field.ErrorList {
		return appsvalidation.ValidateReplicaSet(o, podValidationOptions(&o.Spec.Template))
	})
	registerValidator(func(o *apps.DaemonSet) field.ErrorList {
		return appsvalidation.ValidateDaemonSet(o, podValidationOptions(&o.Spec.Template))
	})
	registerValidator(func(o *apps.StatefulSet) field.ErrorList {
		return appsvalidation.ValidateStatefulSet(o, appsvalidation.StatefulSetValidationOptions{}, podValidationOptions(&o.Spec.Template))
	})
	registerValidator(appsvalidation.ValidateControllerRevisionCreate)
	registerValidator(func(o *batch.CronJob) field.ErrorList {
		return batchvalidation.ValidateCronJobCreate(o, podValidationOptions(&o.Spec.JobTemplate.Spec.Template))
	})
	registerValidator(func(o *batch.Job) field.ErrorList {
		selectOwnPods(o)
		return batchvalidation.ValidateJobCreate(o, batchvalidation.JobValidationOptions{PodValidationOptions: podValidationOptions(&o.Spec.Template), RequirePrefixedLabels: true})
	})
	registerValidator(func(o *autoscaling.HorizontalPodAutoscaler) field.ErrorList {
		return autoscalingvalidation.ValidateHorizontalPodAutoscaler(o, autoscalingvalidation.HorizontalPodAutoscalerSpecValidationOptions{
			MinReplicasLowerBound: 1,
			ScaleTargetRefValidationOptions: autoscalingvalidation.CrossVersionObjectReferenceValidationOptions{
				AllowEmptyAPIGroup: o.Spec.ScaleTargetRef.Kind == "ReplicationController",
			},
			ObjectMetricsValidationOptions: autoscalingvalidation.CrossVersionObjectReferenceValidationOptions{AllowEmptyAPIGroup: true},
		})
	})
	registerValidator(func(o *policy.PodDisruptionBudget) field.ErrorList {
		return policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	})
	registerValidator(func(o *networking.NetworkPolicy) field.ErrorList {
		return networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.ValidationOptionsForNetworking(o, nil))
	})
	registerValidator(networkingvalidation.ValidateIngressCreate)
	registerValidator(networkingvalidation.ValidateIngressClass)
	registerValidator(networkingvalidation.ValidateServiceCIDR)
	registerValidator(networkingvalidation.ValidateIPAddress)
	registerValidator(rbacvalidation.ValidateRole)
	registerValidator(rbacvalidation.ValidateRoleBinding)
	registerValidator(rbacvalidation.ValidateClusterRoleBinding)
	registerValidator(func(o *rbac.ClusterRole) field.ErrorList {
		return rbacvalidation.ValidateClusterRole(o, rbacvalidation.ClusterRoleValidationOptions{})
	})
	registerValidator(storagevalidation.ValidateStorageClass)
	registerValidator(storagevalidation.ValidateVolumeAttachment)
	registerValidator(storagevalidation.ValidateVolumeAttributesClass)
	registerValidator(storagevalidation.ValidateCSIDriver)
	registerValidator(storagevalidation.ValidateCSINode)
	registerValidator(func(o *storage.CSIStorageCapacity) field.ErrorList {
		return storagevalidation.ValidateCSIStorageCapacity(o, storagevalidation.CSIStorageCapacityValidateOptions{})
	})
	registerValidator(schedulingvalidation.ValidatePriorityClass)
	registerValidator(coordinationvalidation.ValidateLease)
	registerValidator(discoveryvalidation.ValidateEndpointSliceCreate)
	registerValidator(nodevalidation.ValidateRuntimeClass)
	registerValidator(certificatesvalidation.ValidateCertificateSigningRequestCreate)
	registerValidator(func(o *certificates.ClusterTrustBundle) field.ErrorList {
		return certificatesvalidation.ValidateClusterTrustBundle(o, certificatesvalidation.ValidateClusterTrustBundleOptions{})
	})
	registerValidator(flowcontrolvalidation.ValidateFlowSchema)
	registerValidator(func(o *flowcontrol.PriorityLevelConfiguration) field.ErrorList {
		return flowcontrolvalidation.ValidatePriorityLevelConfiguration(o, schema.GroupVersion{Group: flowcontrol.GroupName, Version: "v1"}, flowcontrolvalidation.PriorityLevelValidationOptions{})
	})
	registerValidator(admissionregistrationvalidation.ValidateValidatingWebhookConfiguration)
	registerValidator(admissionregistrationvalidation.ValidateMutatingWebhookConfiguration)
	registerValidator(admissionregistrationvalidation.ValidateValidatingAdmissionPolicy)
	registerValidator(admissionregistrationvalidation.ValidateValidatingAdmissionPolicyBinding)
	registerValidator(admissionregistrationvalidation.ValidateMutatingAdmissionPolicy)
	registerValidator(admissionregistrationvalidation.ValidateMutatingAdmissionPolicyBinding)
}

func podValidationOptions(template *core.PodTemplateSpec) corevalidation.PodValidationOptions {
	return podutil.GetValidationOptionsFromPodTemplate(template, nil)
}

// selectOwnPods sets the selector of a Job that the API server generates before validation.
func selectOwnPods(job *batch.Job) {
	if job.Spec.Selector != nil || job.Spec.ManualSelector != nil && *job.Spec.ManualSelector {
		return
	}
	manual := true
	job.Spec.ManualSelector, job.Spec.Selector = &manual, &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.JobNameLabel: job.Name}}
	labels := map[string]string{batchv1.JobNameLabel: job.Name}
	for name, value := range job.Spec.Template.Labels {
		labels[name] = value
	}
	job.Spec.Template.Labels = labels
}

// validateObject finds faults for which kube-apiserver rejects an object.
func validateObject(gvk schema.GroupVersionKind, object map[string]any) field.ErrorList {
	scheme := legacyscheme.Scheme
	versioned, err := scheme.New(gvk)
	if err != nil { // no validators for its group
		return validateMetadata(object)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, versioned); err != nil {
		return field.ErrorList{decodingError(err)}
	}
	scheme.Default(versioned)
	internal, err := scheme.ConvertToVersion(versioned, schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		return field.ErrorList{decodingError(err)}
	}
	check := validators[reflect.TypeOf(internal)]
	if check == nil {
		return validateMetadata(object)
	}
	errs := withoutFollowUp(check(internal))
	if len(errs) == 0 {
		errs = podErrors(internal)
	}
	// Some rules are only in the types. The server does not enforce alpha rules.
	for _, e := range scheme.Validate(context.Background(), nil, versioned) {
		said := slices.ContainsFunc(errs, func(o *field.Error) bool { return o.Field == e.Field && o.Type == e.Type })
		if !said && !e.IsAlpha() && e.Type != field.ErrorTypeInternal {
			errs = append(errs, e)
		}
	}
	return errs
}

// withoutFollowUp removes errors that follow from others: labels that do not match a missing
// selector, and mounts without a volume if a volume is invalid.
func withoutFollowUp(errs field.ErrorList) field.ErrorList {
	noSelector, wrongVolume := false, false
	for _, e := range errs {
		noSelector = noSelector || e.Field == "spec.selector" && e.Type == field.ErrorTypeRequired
		wrongVolume = wrongVolume || volumeFieldPattern.MatchString(e.Field)
	}
	return slices.DeleteFunc(errs, func(e *field.Error) bool {
		return noSelector && e.Field == "spec.template.metadata.labels" || wrongVolume && e.Type == field.ErrorTypeNotFound && mountFieldPattern.MatchString(e.Field)
	})
}

var (
	volumeFieldPattern = regexp.MustCompile(`\bspec\.volumes\[\d+\]`)
	mountFieldPattern  = regexp.MustCompile(`\.(?:volumeMounts|volumeDevices)\[\d+\]\.name$`)
)

// validateDefinition is validateObject for a definition, which has another scheme.
func validateDefinition(object map[string]any) field.ErrorList {
	versioned, internal := &apiextensionsv1.CustomResourceDefinition{}, &apiextensions.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, versioned); err != nil {
		return field.ErrorList{decodingError(err)}
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(versioned)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&versioned.Spec)
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(versioned, internal, nil); err != nil {
		return field.ErrorList{decodingError(err)}
	}
	errs := apiextensionsvalidation.ValidateCustomResourceDefinition(context.Background(), internal)
	for _, e := range errs { // for a single version, the internal version has its fields at the top
		for was, is := range map[string]string{"spec.validation.": "schema.", "spec.subresources": "subresources", "spec.additionalPrinterColumns": "additionalPrinterColumns"} {
			if rest, ok := strings.CutPrefix(e.Field, was); ok {
				e.Field = "spec.versions[0]." + is + rest
			}
		}
	}
	return errs
}

func decodingError(err error) *field.Error {
	return field.Invalid(nil, nil, "cannot be read: "+err.Error())
}

// validateMetadata checks metadata like the server does for every object. It does not know whether
// the kind is namespaced.
func validateMetadata(object map[string]any) field.ErrorList {
	o := &unstructured.Unstructured{Object: object}
	return apivalidation.ValidateObjectMetaAccessor(o, o.GetNamespace() != "", apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// findingOf converts an error to package structure. Some constraints have the field only in the
// message.
func findingOf(e *field.Error, secret bool) structure.Finding {
	path, words := e.Field, errorMessage(e, secret)
	if m := quotedFieldPattern.FindStringSubmatch(words); m != nil && isObjectError(e) {
		path, words = m[1], m[2]
	}
	return structure.Finding{Path: fieldpath.Parse(path), Type: typeOf(e.Type), Message: words}
}

// isObjectError reports whether an error names no field.
func isObjectError(e *field.Error) bool {
	return e.Field == "" || e.Field == (*field.Path)(nil).String()
}

var quotedFieldPattern = regexp.MustCompile(`^"([^"]+)" (.*)$`)

// isSymbolic reports whether an error is about a placeholder.
func isSymbolic(e *field.Error) bool {
	switch value := e.BadValue.(type) {
	case string:
		return strings.Contains(value, SymbolicMark)
	case []byte:
		return bytes.Contains(value, []byte(SymbolicMark))
	}
	return false
}

// formatExamplePattern matches the server's examples of a form.
var formatExamplePattern = regexp.MustCompile(` \(e\.g\. .*regex used for validation is '.*'\)$`)

// errorMessage is the message of an error, with the value if it is short and not secret.
func errorMessage(e *field.Error, secret bool) string {
	words := strings.TrimSpace(formatExamplePattern.ReplaceAllString(e.Detail, ""))
	value := ""
	if v := reflect.ValueOf(e.BadValue); !secret && v.IsValid() && !isObjectError(e) {
		switch v.Kind() {
		case reflect.String:
			if text := v.String(); len(text) <= 100 {
				value = fmt.Sprintf("%q", text)
			}
		case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64, reflect.Float64:
			value = fmt.Sprint(v.Interface())
		}
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		value = ""
		// the server also uses this type for wrong values
		if valid, ok := strings.CutPrefix(words, "valid values: "); ok {
			words = "must be one of " + valid
		} else {
			words = strings.TrimSuffix("must be set: "+words, ": ")
		}
	case field.ErrorTypeForbidden:
		value = ""
	case field.ErrorTypeDuplicate:
		words = strings.TrimSuffix("is listed twice: "+words, ": ")
	case field.ErrorTypeNotSupported:
		return strings.TrimSpace(value + " " + strings.Replace(words, "supported values: ", "is not supported; use ", 1))
	}
	if words == "" {
		words = strings.ToLower(e.Type.String())
	}
	if value == "" || strings.Contains(words, value) {
		return words
	}
	return value + ": " + words
}
