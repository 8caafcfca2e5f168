// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	druidv1alpha1 "github.com/pergola-dev/pergola/api/druid/v1alpha1"
)

// ValidatingWebhookConfiguration returns the configuration of the webhooks that deny changes. It
// may be empty.
func ValidatingWebhookConfiguration(c Configuration) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	result := &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: c.name(), Labels: c.labels()},
	}
	for _, webhook := range c.validating() {
		config, err := c.Target.ClientConfig(webhook.path)
		if err != nil {
			return nil, err
		}
		result.Webhooks = append(result.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: webhook.name + suffixWebhook, ClientConfig: config, Rules: webhook.rules, NamespaceSelector: selectorOf(), ObjectSelector: webhook.objects,
			FailurePolicy: ptr.To(admissionregistrationv1.Fail), MatchPolicy: ptr.To(admissionregistrationv1.Exact), TimeoutSeconds: ptr.To[int32](timeoutSeconds),
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: reviewVersions(),
		})
	}
	return result, nil
}

// validatingWebhook has the settings in which validating webhooks differ.
type validatingWebhook struct {
	name, path string
	rules      []admissionregistrationv1.RuleWithOperations
	objects    *metav1.LabelSelector
}

func (c Configuration) validating() (all []validatingWebhook) {
	if c.Webhooks.CRDDeletionProtection.Enabled {
		definitions := rules("apiextensions.k8s.io", "v1beta1", []string{"customresourcedefinitions"}, admissionregistrationv1.Delete)
		definitions[0].APIVersions = append(definitions[0].APIVersions, "v1")
		all = append(all,
			validatingWebhook{"crd-deletion-protection", PathCRDDeletionProtection, definitions, labelSelector(DeletionProtected, "true")},
			validatingWebhook{"cr-deletion-protection", PathCRDDeletionProtection, deletionRules(), nil},
		)
	}
	if c.Webhooks.ExtensionValidation.Enabled {
		for _, kind := range validatedKinds() {
			all = append(all, validatingWebhook{"validation.extensions." + kind.resource, kind.path(),
				rules(kind.Group, kind.Version, []string{kind.resource}, admissionregistrationv1.Create, admissionregistrationv1.Update), nil})
		}
	}
	return all
}

// deletionRules returns the rules for Etcds, then for extension objects.
func deletionRules() []admissionregistrationv1.RuleWithOperations {
	var etcd, extension []string
	var gv metav1.GroupVersionKind
	for _, kind := range validatedKinds() {
		if kind.Group == druidv1alpha1.SchemeGroupVersion.Group {
			etcd = append(etcd, kind.resource)
		} else {
			extension, gv = append(extension, kind.resource), kind.GroupVersionKind
		}
	}
	return append(rules(druidv1alpha1.SchemeGroupVersion.Group, druidv1alpha1.SchemeGroupVersion.Version, etcd, admissionregistrationv1.Delete),
		rules(gv.Group, gv.Version, extension, admissionregistrationv1.Delete)...)
}
