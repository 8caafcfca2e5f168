// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
)

// A field is handed over if Git declares it and a controller changes it as its task. It keeps the
// value of the controller until Git declares a different value than before. This is the complete
// table; docs/reference/field-ownership.md explains it. Fields that Git does not declare need no
// entry: server-side apply ignores them, also defaults of the API.

// handoverRule is an entry of the table.
type handoverRule struct {
	kinds              []schema.GroupKind
	path               string // dotted; "*" is every item of a named list, or every key of a map
	isLeftToController func(apply.FieldConflict) (string, bool)
	// source is the upstream code that sets the field.
	source string
}

func handoverTable() []handoverRule {
	core := func(kind string) schema.GroupKind {
		return gardencorev1beta1.SchemeGroupVersion.WithKind(kind).GroupKind()
	}
	shoot := []schema.GroupKind{core("Shoot")}
	project := []schema.GroupKind{core("Project")}
	gardenlet := []schema.GroupKind{seedmanagementv1alpha1.SchemeGroupVersion.WithKind("Gardenlet").GroupKind()}
	all := []schema.GroupKind{core("Shoot"), core("Seed"), core("Project"), core("CloudProfile"), core("BackupBucket"), core("BackupEntry"),
		core("ControllerRegistration"), operatorv1alpha1.SchemeGroupVersion.WithKind("Garden").GroupKind(),
		seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeed").GroupKind(), gardenlet[0]}
	const (
		maintenance = "pkg/controllermanager/controller/shoot/maintenance"
		cluster     = "spec.kubernetes."
		pool        = "spec.provider.workers.*."
	)
	rules := []handoverRule{
		{shoot, "spec.seedName", handOverBoundSeed, "pkg/scheduler/controller/shoot, subresource shoots/binding"},
		{shoot, "spec.hibernation.enabled", handOverScheduledHibernation, "pkg/controllermanager/controller/shoot/hibernation"},
		{shoot, cluster + "version", handOverRaisedVersion, maintenance},
		{shoot, pool + "kubernetes.version", handOverRaisedVersion, maintenance},
		{shoot, pool + "machine.image.version", handOverRaisedImage, maintenance},
		{shoot, "spec.secretBindingName", handOverFieldDroppedSince(34), maintenance},
		{shoot, "spec.addons", handOverFieldDroppedSince(35), maintenance},
		{shoot, "spec.dns.providers", handOverFieldDroppedSince(35), maintenance},
		{shoot, cluster + "kubeControllerManager.podEvictionTimeout", handOverFieldDroppedSince(33), maintenance},
		{shoot, cluster + "clusterAutoscaler.maxEmptyBulkDelete", handOverFieldDroppedSince(33), maintenance},
		{shoot, cluster + "kubeScheduler.kubeMaxPDVols", handOverFieldDroppedSince(35), maintenance},
		{shoot, cluster + "kubeAPIServer.watchCacheSizes.default", handOverFieldDroppedSince(35), maintenance},
		{shoot, cluster + "kubeAPIServer.enableAnonymousAuthentication", handOverFieldDroppedSince(35), maintenance},
		{shoot, cluster + "kubeAPIServer.admissionPlugins.*", handOverFieldDroppedSince(0), maintenance},
		{shoot, pool + "kubernetes.kubelet.featureGates.*", handOverFieldDroppedSince(0), maintenance},
		{project, "spec.namespace", handOverControllerField, "pkg/controllermanager/controller/project"},
		{project, "spec.createdBy", handOverControllerField, "plugin/pkg/project/mutator"},
		{gardenlet, "spec.deployment.helm.ociRepository.ref", handOverAutoUpdatedChart, "pkg/operator/controller/garden"},
		{gardenlet, "spec.deployment.helm.ociRepository.tag", handOverAutoUpdatedChart, "pkg/operator/controller/garden"},
		{gardenlet, "spec.deployment.helm.ociRepository.digest", handOverAutoUpdatedChart, "pkg/operator/controller/garden"},
		{all, "metadata.labels.*", handOverControllerMetadata, "the controllers and admission plugins of the kind"},
		{all, "metadata.annotations.*", handOverControllerMetadata, "the controllers and admission plugins of the kind"},
	}
	for _, component := range []string{"kubeAPIServer", "kubeControllerManager", "kubeScheduler", "kubelet", "kubeProxy"} {
		rules = append(rules, handoverRule{shoot, cluster + component + ".featureGates.*", handOverFieldDroppedSince(0), maintenance})
	}
	return rules
}

// engineHandoverRules returns the table for the engine.
func engineHandoverRules() []apply.FieldPolicy {
	var out []apply.FieldPolicy
	for _, r := range handoverTable() {
		for _, kind := range r.kinds {
			out = append(out, apply.FieldPolicy{Kind: kind, Path: strings.Split(r.path, "."), Defer: r.isLeftToController, Overrides: isControllerManager})
		}
	}
	return out
}

// isControllerManager reports whether a field manager is a program that changes declared fields as
// its task: upstream's, or its replacement in Pergola.
func isControllerManager(manager string) bool {
	return slices.Contains([]string{"gardener-apiserver", "gardener-controller-manager", "gardener-scheduler", "gardener-operator", "gardenlet",
		"gardener-admission-controller", "pergola-controller-manager", "pergola-scheduler", "pergola-operator", "pergola-gardenlet"}, manager)
}

// isPersonManager reports whether a field manager is a tool for people. Such an edit of a declared
// field is reverted. Flux takes over fields of kubectl in the same way
// (github.com/fluxcd/kustomize-controller). An unknown manager may be a controller that would
// repeat its write for ever: that is a conflict.
func isPersonManager(manager string) bool {
	return strings.HasPrefix(manager, "kubectl-") || slices.Contains([]string{"kubectl", "before-first-apply", "k9s", "gardener-dashboard"}, manager)
}

// handOverBoundSeed: a bound Shoot stays on its Seed.
func handOverBoundSeed(c apply.FieldConflict) (string, bool) {
	return "the Shoot is bound to this Seed", c.Live != nil && !c.DeclarationChanged
}

// handOverScheduledHibernation: with schedules, they and people decide about hibernation, and so
// does a commit that changes the value.
func handOverScheduledHibernation(c apply.FieldConflict) (string, bool) {
	schedules, _, _ := unstructured.NestedSlice(c.Object.Object, "spec", "hibernation", "schedules")
	return "spec.hibernation.schedules decide", c.Live != nil && !c.DeclarationChanged && len(schedules) > 0
}

// handOverRaisedVersion: the API forbids to downgrade a Kubernetes version that maintenance has
// raised.
func handOverRaisedVersion(c apply.FieldConflict) (string, bool) {
	return raisedReason(c, "kubernetesVersion"), isControllerManager(c.Manager) && isOlderVersion(c.Declared, c.Live)
}

// handOverRaisedImage: an image that maintenance has raised stays until a commit declares another
// one, even an older one.
func handOverRaisedImage(c apply.FieldConflict) (string, bool) {
	return raisedReason(c, "machineImageVersion"), isControllerManager(c.Manager) && !c.DeclarationChanged && isOlderVersion(c.Declared, c.Live) &&
		poolImageName(c.Object, c.Key) == poolImageName(c.LiveObject, c.Key)
}

func raisedReason(c apply.FieldConflict, what string) string {
	if auto, set, _ := unstructured.NestedBool(c.LiveObject.Object, "spec", "maintenance", "autoUpdate", what); set && !auto {
		return "maintenance raised it, because the version in Git expired"
	}
	return "maintenance raised it (spec.maintenance.autoUpdate)"
}

// poolImageName returns the image name of a worker pool.
func poolImageName(shoot *unstructured.Unstructured, pool string) string {
	workers, _, _ := unstructured.NestedSlice(shoot.Object, "spec", "provider", "workers")
	for _, w := range workers {
		if m, ok := w.(map[string]any); ok && m["name"] == pool {
			name, _, _ := unstructured.NestedString(m, "machine", "image", "name")
			return name
		}
	}
	return ""
}

// isOlderVersion reports whether a is the older version; it is false if they cannot be compared.
func isOlderVersion(a, b any) bool {
	x, okx := parseVersion(a)
	y, oky := parseVersion(b)
	return okx && oky && x.LessThan(y)
}

// parseVersion also accepts a short version such as 1.33.
func parseVersion(v any) (*version.Version, bool) {
	text, _ := v.(string)
	parsed, err := version.ParseSemantic(text)
	if err != nil {
		parsed, err = version.ParseGeneric(text)
	}
	return parsed, err == nil
}

// handOverFieldDroppedSince: maintenance removes fields that a minor version no longer supports
// when it updates to that version.
func handOverFieldDroppedSince(minor uint) func(apply.FieldConflict) (string, bool) {
	return func(c apply.FieldConflict) (string, bool) {
		path := []string{"spec", "kubernetes", "version"}
		declared, _, _ := unstructured.NestedString(c.Object.Object, path...)
		live, _, _ := unstructured.NestedString(c.LiveObject.Object, path...)
		now, ok := parseVersion(live)
		by, _ := c.OtherManager(path...)
		return "maintenance removed it when it raised spec.kubernetes.version to " + live,
			c.Live == nil && ok && now.Minor() >= minor && isControllerManager(by) && isOlderVersion(declared, live)
	}
}

// handOverControllerField: a controller sets the field permanently.
func handOverControllerField(c apply.FieldConflict) (string, bool) {
	return "a controller sets it", c.Live != nil && isControllerManager(c.Manager)
}

// handOverAutoUpdatedChart: with the label, the operator may change the chart version.
func handOverAutoUpdatedChart(c apply.FieldConflict) (string, bool) {
	const label = operatorv1alpha1.LabelAutoUpdateGardenlet
	return "label " + label, c.Live != nil && isControllerManager(c.Manager) && c.LiveObject.GetLabels()[label] == "true"
}

// handOverControllerMetadata: controllers store state in labels and annotations of Gardener.
func handOverControllerMetadata(c apply.FieldConflict) (string, bool) {
	domain, _, _ := strings.Cut(c.Key, "/")
	return "controllers keep their state in it", c.Live != nil && isControllerManager(c.Manager) &&
		(domain == "gardener.cloud" || strings.HasSuffix(domain, ".gardener.cloud"))
}
