// SPDX-License-Identifier: Apache-2.0

package garden

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/crosscheck"
)

// shootConfig is a configuration of a Shoot's API server in a ConfigMap.
type shootConfig struct {
	title, rule string
	key         string
	path        []string
}

var (
	kubeAPIServerPath = []string{"spec", "kubernetes", "kubeAPIServer"}
	auditPolicy       = shootConfig{"audit policy", "shoot/audit-policy", "policy", slices.Concat(kubeAPIServerPath, []string{"auditConfig", "auditPolicy", "configMapRef", "name"})}
	authentication    = shootConfig{"structured authentication", "shoot/structured-authentication", "config.yaml", slices.Concat(kubeAPIServerPath, []string{"structuredAuthentication", "configMapName"})}
	authorization     = shootConfig{"structured authorization", "shoot/structured-authorization", "config.yaml", slices.Concat(kubeAPIServerPath, []string{"structuredAuthorization", "configMapName"})}
)

var configMapsResource = corev1.SchemeGroupVersion.WithResource("configmaps")

func (c shootConfig) configMapOf(shoot *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(shoot.Object, c.path...)
	return name
}

// checkConfiguration checks that the ConfigMap of a Shoot exists and is valid, and that it stays
// valid while Shoots use it. The rules are those of pergola validate.
func (w *webhooks) checkConfiguration(c shootConfig) func(context.Context, *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	return func(ctx context.Context, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
		if request.SubResource != "" || request.Operation == admissionv1.Delete {
			return allowed()
		}
		object, old, err := decodeObjects[unstructured.Unstructured](request)
		if err != nil {
			return nil, err
		}
		switch request.Kind.Kind {
		case "Shoot":
			return w.checkShootConfiguration(ctx, c, object, old)
		case "ConfigMap":
			return w.checkConfigMapInUse(ctx, c, object, old)
		}
		return allowed()
	}
}

// checkShootConfiguration skips Shoots that are being deleted or whose spec does not change, as
// upstream does.
func (w *webhooks) checkShootConfiguration(ctx context.Context, c shootConfig, shoot, old *unstructured.Unstructured) (*admissionv1.AdmissionResponse, error) {
	name := c.configMapOf(shoot)
	if name == "" || shoot.GetDeletionTimestamp() != nil || old != nil && equality.Semantic.DeepEqual(shoot.Object["spec"], old.Object["spec"]) {
		return allowed()
	}
	config, err := w.Garden.Get(ctx, configMapsResource, shoot.GetNamespace(), name)
	if apierrors.IsNotFound(err) {
		return invalid("%s: ConfigMap %q does not exist in namespace %q; create it with the %s", strings.Join(c.path, "."), name, shoot.GetNamespace(), c.title)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", shoot.GetNamespace(), name, err)
	}
	return w.checkRules(c, shoot, config)
}

func (w *webhooks) checkConfigMapInUse(ctx context.Context, c shootConfig, config, old *unstructured.Unstructured) (*admissionv1.AdmissionResponse, error) {
	content := func(o *unstructured.Unstructured) string {
		text, _, _ := unstructured.NestedString(o.Object, "data", c.key)
		return text
	}
	if old == nil || content(config) == content(old) {
		return allowed()
	}
	using, err := w.findShoots(ctx, config.GetNamespace(), func(shoot *unstructured.Unstructured) bool {
		return c.configMapOf(shoot) == config.GetName() && shoot.GetDeletionTimestamp() == nil
	})
	if err != nil {
		return nil, err
	}
	for _, shoot := range using {
		if response, err := w.checkRules(c, shoot, config); err != nil || !response.Allowed {
			return response, err
		}
	}
	return allowed()
}

// checkRules checks a Shoot with its ConfigMap.
func (w *webhooks) checkRules(c shootConfig, shoot, config *unstructured.Unstructured) (*admissionv1.AdmissionResponse, error) {
	found := crosscheck.Check([]schemas.Input{{Object: shoot}, {Object: config}}, crosscheck.Options{
		Now: w.Clock.Now(), IsReferenceOnly: func(in *schemas.Input) bool { return in.Object != shoot },
	})
	var wrong []string
	for _, v := range found {
		if v.Rule == c.rule && v.Severity == schemas.SeverityError {
			wrong = append(wrong, v.Field+": "+v.Message)
		}
	}
	if len(wrong) > 0 {
		return invalid("the %s of Shoot %s/%s is not valid: %s", c.title, shoot.GetNamespace(), shoot.GetName(), strings.Join(wrong, "; "))
	}
	return allowed()
}
