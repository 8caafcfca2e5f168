// SPDX-License-Identifier: Apache-2.0

package gardenletdeployer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"

	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/access"
	"github.com/pergola-dev/pergola/controllers/charts"
	"github.com/pergola-dev/pergola/controllers/conventions"
	"github.com/pergola-dev/pergola/render"
)

// Reasons besides upstream's, for problems that a user has to solve.
const (
	reasonConfig  = "ConfigurationInvalid"
	reasonCluster = "ClusterNotReachable"
	reasonSecret  = "KubeconfigMissing"
	reasonChart   = "ChartProblem"
)

var (
	kindSecret       = corev1.SchemeGroupVersion.WithKind("Secret")
	fullyCachedKinds = []schema.GroupKind{kindGardenlet.GroupKind()}
)

// reasonError is an error with a reason.
type reasonError struct {
	reason string
	error
}

func (f *reasonError) Unwrap() error { return f.error }

func withReason(reason string, err error) error { return &reasonError{reason, err} }

func reasonOf(err error) string {
	if f := new(reasonError); errors.As(err, &f) {
		return f.reason
	}
	return reasonFailed
}

// install renders the chart of a Gardenlet and applies it. seed is nil if it does not exist.
func (d *Deployer) install(ctx context.Context, live, seed *unstructured.Unstructured) error {
	g := &seedmanagementv1alpha1.Gardenlet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, g); err != nil {
		return withReason(reasonConfig, fmt.Errorf("the Gardenlet cannot be read: %w", err))
	}
	v, err := chartValuesOf(g)
	if err != nil {
		return err
	}
	named := g.Spec.Deployment.Helm.OCIRepository
	ref, err := render.ParseChartReference(named)
	if err != nil {
		return withReason(reasonChart, fmt.Errorf("spec.deployment.helm.ociRepository: %w", err))
	}
	chart, err := d.Charts.Pull(ctx, named, func() (charts.Credentials, error) {
		return charts.CredentialsOf(named, func(secret string) (map[string][]byte, error) { return d.readSecret(ctx, secret) })
	})
	if err != nil {
		return withReason(reasonChart, err)
	}
	target, err := d.targetCluster(ctx, g)
	if err != nil {
		return err
	}
	if target != d.runtime {
		defer target.Close()
	}
	api, err := discovery.NewDiscoveryClientForConfig(target.RESTConfig())
	if err != nil {
		return withReason(reasonCluster, fmt.Errorf("reading the API of the gardenlet's cluster: %w", err))
	}
	version, err := api.ServerVersion()
	if err != nil {
		return withReason(reasonCluster, fmt.Errorf("reading the API of the gardenlet's cluster: %w", err))
	}
	if err := d.ensureAccess(ctx, target, v, g, seed); err != nil {
		return err
	}
	objects, err := chart.ObjectsOf(ref, "gardenlet", Namespace, version.GitVersion, v.all)
	if err != nil {
		return withReason(reasonChart, fmt.Errorf("chart %s: %s", ref, redactKubeconfig(err.Error(), v)))
	}
	return applyAll(ctx, target, objects)
}

// redactKubeconfig removes values of the kubeconfig from an error of a chart, which may quote them.
func redactKubeconfig(text string, v *chartValues) string {
	kubeconfig, _ := nestedMap(v.connection, "bootstrapKubeconfig")["kubeconfig"].(string)
	for _, line := range strings.Split(kubeconfig, "\n") {
		if _, value, found := strings.Cut(strings.TrimSpace(line), ": "); found && len(value) > 12 {
			text = strings.ReplaceAll(text, value, "…")
		}
	}
	return text
}

// readSecret reads a Secret that a Gardenlet names, from its namespace in the virtual garden.
func (d *Deployer) readSecret(ctx context.Context, name string) (map[string][]byte, error) {
	ref := secretRef(secretName{Namespace, name})
	obj, err := d.virtual.GetLive(ctx, ref)
	if err != nil {
		return nil, d.virtual.Explain(ref, "read", err)
	}
	var s corev1.Secret
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &s)
	return s.Data, err
}

func secretRef(s secretName) apply.Ref {
	return apply.Ref{APIVersion: kindSecret.GroupVersion().String(), Kind: kindSecret.Kind, Namespace: s.namespace, Name: s.name}
}

// targetCluster returns the cluster in which the gardenlet is installed.
func (d *Deployer) targetCluster(ctx context.Context, g *seedmanagementv1alpha1.Gardenlet) (*apply.Cluster, error) {
	if g.Spec.KubeconfigSecretRef == nil {
		return d.runtime, nil
	}
	name := g.Spec.KubeconfigSecretRef.Name
	data, err := d.readSecret(ctx, name)
	if err != nil {
		return nil, withReason(reasonSecret, fmt.Errorf("spec.kubeconfigSecretRef: %w", err))
	}
	if len(data[access.KubeconfigKey]) == 0 {
		return nil, withReason(reasonSecret, fmt.Errorf("spec.kubeconfigSecretRef: Secret %s has no key %s", name, access.KubeconfigKey))
	}
	config, err := access.ParseKubeconfig(data[access.KubeconfigKey])
	if err != nil {
		return nil, withReason(reasonSecret, fmt.Errorf("spec.kubeconfigSecretRef: Secret %s: %w", name, err))
	}
	config.UserAgent, config.WarningHandler = d.Runtime.UserAgent, d.Runtime.WarningHandler
	config.WrapTransport = d.Runtime.WrapTransport // fenced like the other connections
	return conventions.NewCluster("the cluster of Gardenlet "+g.Name, config, apply.ClusterOptions{Clock: d.Clock})
}

// ensureAccess adds a bootstrap kubeconfig to the values, unless the gardenlet has its own valid
// access.
func (d *Deployer) ensureAccess(ctx context.Context, target *apply.Cluster, v *chartValues, g *seedmanagementv1alpha1.Gardenlet, seed *unstructured.Unstructured) error {
	ref := secretRef(v.accessSecret())
	had, err := target.GetLive(ctx, ref)
	switch {
	case err == nil && !d.hasExpired(seed):
		v.removeBootstrapKubeconfig()
		return nil
	case err == nil:
		gone := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(had.GetUID())}}
		mapping, err := target.Mapping(ctx, kindSecret)
		if err == nil {
			err = target.Dynamic().Resource(mapping.Resource).Namespace(ref.Namespace).Delete(ctx, ref.Name, gone)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return target.Explain(ref, "delete the expired access", err)
		}
	case !apierrors.IsNotFound(err):
		return withReason(reasonCluster, target.Explain(ref, "read", err))
	}
	kubeconfig, err := d.bootstrapKubeconfig(ctx, v, g.Name, g.UID)
	if err != nil {
		return err
	}
	v.setBootstrapKubeconfig(kubeconfig)
	return nil
}

// hasExpired reports whether the gardenlet's certificate for the virtual garden has expired.
func (d *Deployer) hasExpired(seed *unstructured.Unstructured) bool {
	if seed == nil {
		return false
	}
	text, _, _ := unstructured.NestedString(seed.Object, "status", "clientCertificateExpirationTimestamp")
	until, err := time.Parse(time.RFC3339, text)
	return err == nil && until.Before(d.Clock.Now())
}

// applyAll applies objects, prerequisites first. A failed object does not stop the others.
func applyAll(ctx context.Context, target *apply.Cluster, objects []render.Object) error {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(Namespace)
	if err := applyObject(ctx, target, namespace); err != nil {
		return err
	}
	slices.SortStableFunc(objects, func(a, b render.Object) int { return applyOrder(a.GetKind()) - applyOrder(b.GetKind()) })
	var problems []error
	for _, o := range objects {
		problems = append(problems, applyObject(ctx, target, o.Unstructured))
	}
	return errors.Join(problems...)
}

// applyOrder returns the position of a kind in the order of application.
func applyOrder(kind string) int {
	switch kind {
	case "CustomResourceDefinition", "Namespace", "PriorityClass":
		return 0
	case "ServiceAccount", "Secret", "ConfigMap", "ClusterRole", "Role":
		return 1
	case "ClusterRoleBinding", "RoleBinding", "Service":
		return 2
	}
	return 3
}

func applyObject(ctx context.Context, target *apply.Cluster, o *unstructured.Unstructured) error {
	ref := apply.RefOf(o)
	mapping, err := target.Mapping(ctx, ref.GVK())
	if err != nil {
		return target.Explain(ref, "apply", err)
	}
	body, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	options := metav1.PatchOptions{FieldManager: FieldManager, Force: ptr.To(true)}
	if _, err := target.Dynamic().Resource(mapping.Resource).Namespace(ref.Namespace).Patch(ctx, ref.Name, types.ApplyPatchType, body, options); err != nil {
		return target.Explain(ref, "apply", err)
	}
	return nil
}
