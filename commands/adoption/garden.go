// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
	"github.com/pergola-dev/pergola/render"
)

// fixedFields are fields of a Garden that describe existing things: a new value would not change
// them, but break them.
var fixedFields = map[string]string{
	"spec.virtualCluster.gardener.clusterIdentity":                                      "Seeds, Shoots and the objects of extensions carry it",
	"spec.virtualCluster.networking":                                                    "Services of the virtual garden have addresses from it",
	"spec.runtimeCluster.networking":                                                    "the runtime cluster has these networks",
	"spec.virtualCluster.kubernetes.kubeAPIServer.serviceAccountConfig.issuer":          "tokens name it: change it in a later commit, with the previous issuer in acceptedIssuers",
	"spec.virtualCluster.etcd.main.backup.bucketName":                                   "existing backups use it",
	"spec.virtualCluster.etcd.main.backup.provider":                                     "existing backups use it",
	"spec.virtualCluster.dns.domains":                                                   "clients reach the API server through them",
	"spec.runtimeCluster.provider.zones":                                                "volumes and pods are in them",
	"spec.virtualCluster.controlPlane":                                                  "etcd cannot return from three members to one, and adds members one by one: change it after the takeover",
	"spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig":                     "a change re-encrypts objects in etcd: change it after the takeover",
	"spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig":                   "a change re-encrypts objects in etcd: change it after the takeover",
	"spec.virtualCluster.kubernetes.kubeAPIServer.serviceAccountConfig.acceptedIssuers": "tokens that are in use name them",
}

// checkGarden compares the live Garden's spec with that of Git, both with API defaults.
func (a *Adopter) checkGarden(r *Report, live *unstructured.Unstructured) error {
	if live == nil {
		r.add(Finding{Level: LevelChanges, Area: AreaGarden, Cluster: "runtime", Text: "the runtime cluster has no Garden: gardener-operator does not run this landscape",
			Advice: "see docs/howto/migrate-from-gardener.md on landscapes without gardener-operator: the Secrets to label, the names of volume claims, DNS"})
		return nil
	}
	r.add(checkState(live)...)
	name := "Garden " + live.GetName()
	declared, err := a.Converger.DefaultedGarden()
	if err != nil {
		return err
	}
	lives, err := defaultedSpec(live)
	if err != nil {
		return err
	}
	spec := func(spec any) map[string]any {
		return map[string]any{"apiVersion": "operator.gardener.cloud/v1alpha1", "kind": "Garden", "spec": spec}
	}
	found := false
	for _, field := range redact.Compare(spec(lives), spec(declared["spec"])) {
		found = true
		f := Finding{Level: LevelChanges, Area: AreaGarden, Cluster: "runtime", Objects: []string{name}, Fields: []change.Field{field}, Text: field.Path + " differs from the file"}
		switch why := fixedFieldReason(field); {
		case why != "":
			f.Level, f.Advice = LevelBlocks, "write the live value into the file: "+why
		case field.New == nil && !field.Hidden:
			f.Text, f.Advice = field.Path+" is set in the cluster but not in the file", "write it into the file; otherwise it is removed if gardener-operator, kubectl apply or Helm set it, and unchanged if not"
		case field.Path == "spec.virtualCluster.kubernetes.version":
			f = adjustVersionFinding(f, field)
		}
		r.add(f)
	}
	if !found {
		r.add(Finding{Level: LevelNoAction, Area: AreaGarden, Cluster: "runtime", Objects: []string{name}, Text: "the file matches the cluster"})
	}
	return nil
}

// checkState reports operations in progress on the Garden.
func checkState(live *unstructured.Unstructured) []Finding {
	var out []Finding
	name := "Garden " + live.GetName()
	if live.GetDeletionTimestamp() != nil {
		out = append(out, Finding{Level: LevelBlocks, Area: AreaGarden, Cluster: "runtime", Objects: []string{name}, Text: "it is being deleted"})
	}
	if operation := live.GetAnnotations()["gardener.cloud/operation"]; operation != "" {
		out = append(out, Finding{Level: LevelBlocks, Area: AreaGarden, Cluster: "runtime", Objects: []string{name}, Text: fmt.Sprintf("operation %q has not started yet", operation),
			Advice: "wait until " + reconcilerOf(live) + " has completed it"})
	}
	if state := stringField(live, "status", "lastOperation", "state"); state != "Succeeded" {
		out = append(out, Finding{Level: LevelBlocks, Area: AreaGarden, Cluster: "runtime", Objects: []string{name}, Text: fmt.Sprintf("its last operation is %q: %s", state, stringField(live, "status", "lastOperation", "description")),
			Advice: "wait until " + reconcilerOf(live) + " is done, or fix the reported problem: a takeover needs a successful last operation"})
	}
	return out
}

// reconcilerPergola is the name of the reconciler, beside gardener-operator.
const reconcilerPergola = "Pergola"

// reconcilerOf names the last reconciler of a Garden.
func reconcilerOf(garden *unstructured.Unstructured) string {
	if isAppliedByPergola(garden) && !strings.HasPrefix(stringField(garden, "status", "gardener", "name"), operatorRole) {
		return reconcilerPergola
	}
	return operatorRole
}

// defaultedSpec returns the spec of a Garden with API defaults, which are missing if no webhook, or
// an older one, has defaulted it.
func defaultedSpec(live *unstructured.Unstructured) (any, error) {
	garden := &operatorv1alpha1.Garden{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, garden); err != nil {
		return nil, fmt.Errorf("reading Garden %s: %w", live.GetName(), err)
	}
	operatorv1alpha1.SetDefaults_Garden(garden)
	full, err := runtime.DefaultUnstructuredConverter.ToUnstructured(garden)
	if err != nil {
		return nil, fmt.Errorf("reading Garden %s: %w", live.GetName(), err)
	}
	// including fields that our types do not know
	return mergeMissing(full["spec"], live.Object["spec"]), nil
}

// mergeMissing returns a value merged with the fields that only the other value has.
func mergeMissing(value, more any) any {
	x, is := value.(map[string]any)
	y, too := more.(map[string]any)
	if !is || !too {
		if value == nil {
			return more
		}
		return value
	}
	out := maps.Clone(x)
	for key, other := range y {
		out[key] = mergeMissing(out[key], other)
	}
	return out
}

func adjustVersionFinding(f Finding, field change.Field) Finding {
	before, err := semver.NewVersion(fmt.Sprint(field.Old))
	after, err2 := semver.NewVersion(fmt.Sprint(field.New))
	if err == nil && err2 == nil && after.LessThan(before) {
		f.Level, f.Advice = LevelBlocks, "write the live value into the file: versions cannot be downgraded"
		return f
	}
	f.Level, f.Advice = LevelRestarts, "the takeover would update the API server of the virtual garden: change the version in a later commit instead"
	return f
}

// fixedFieldReason says why a field must not change, or returns "". Additional zones, domains and
// issuers are allowed.
func fixedFieldReason(field change.Field) string {
	for path, why := range fixedFields {
		rest, within := strings.CutPrefix(field.Path, path)
		if !within || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		if isAddition(field) && (strings.HasSuffix(path, ".zones") || strings.HasSuffix(path, ".domains") || strings.HasSuffix(path, ".acceptedIssuers")) {
			return ""
		}
		return why
	}
	return ""
}

// isAddition reports whether a change only adds values.
func isAddition(field change.Field) bool {
	if field.Old == nil && field.New != nil {
		return true
	}
	before, is := field.Old.([]any)
	after, are := field.New.([]any)
	return is && are && len(after) > len(before) && slices.EqualFunc(before, after[:len(before)], func(x, y any) bool { return fmt.Sprint(x) == fmt.Sprint(y) })
}

// apiServerImage is the image vector entry with the catalogue's version of Gardener.
const apiServerImage = "gardener-apiserver"

// checkVersions compares the version of gardener-operator with that of the catalogue.
func (a *Adopter) checkVersions(r *Report, garden *unstructured.Unstructured) error {
	lives := stringField(garden, "status", "gardener", "version")
	if garden == nil || lives == "" {
		return nil
	}
	if reconcilerOf(garden) == reconcilerPergola {
		r.add(Finding{Level: LevelNoAction, Area: AreaVersions, Cluster: "runtime", Text: "Pergola reconciled the Garden last"})
		return nil
	}
	images, err := render.ReadImageVector(a.Catalogue)
	if err != nil {
		return err
	}
	ours := ""
	for _, image := range images {
		if image.Name == apiServerImage {
			ours = image.Tag
		}
	}
	f := Finding{Level: LevelNoAction, Area: AreaVersions, Cluster: "runtime", Text: fmt.Sprintf("gardener-operator is %s, and the catalogue is written for Gardener %s", lives, ours)}
	before, err := semver.NewVersion(lives)
	after, err2 := semver.NewVersion(ours)
	switch {
	case err != nil || err2 != nil:
		f.Level, f.Advice = LevelChanges, "compare them yourself: one of the two is not a semantic version"
	case before.Major() != after.Major() || after.Minor() > before.Minor()+1:
		f.Level, f.Advice = LevelBlocks, fmt.Sprintf("update gardener-operator to v%d.%d first: Gardener cannot skip a minor version", after.Major(), after.Minor()-1)
	case after.Minor() < before.Minor():
		f.Level, f.Advice = LevelBlocks, "use a version of Pergola with a newer catalogue: Gardener cannot be downgraded"
	case after.Minor() > before.Minor():
		f.Level, f.Advice = LevelRestarts, "the takeover also updates Gardener; to avoid that, update gardener-operator to the same minor version first"
	}
	r.add(f)
	return nil
}

// rewritePhases are the phases in which upstream rewrites encrypted data and marks the objects and
// Deployments in its own way.
var rewritePhases = []string{string(gardencorev1beta1.RotationPreparing), string(gardencorev1beta1.RotationCompleting)}

// checkRotation reports rotations of credentials. They have upstream's phases and continue from
// there.
func checkRotation(r *Report, garden *unstructured.Unstructured) {
	if garden == nil {
		return
	}
	rotation, _, _ := unstructured.NestedMap(garden.Object, "status", "credentials", "rotation")
	for _, kind := range []string{"certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey", "observability", "workloadIdentityKey"} {
		one, _ := rotation[kind].(map[string]any)
		phase, _ := one["phase"].(string)
		f := Finding{Level: LevelNoAction, Area: AreaRotation, Cluster: "runtime", Text: fmt.Sprintf("rotation of %s: %s", kind, phase)}
		switch {
		case phase == "":
			continue
		case slices.Contains(rewritePhases, phase) && reconcilerOf(garden) == reconcilerPergola:
			f.Advice = "nothing to do: Pergola has started this step itself, or continues it"
		case slices.Contains(rewritePhases, phase) && kind == "etcdEncryptionKey":
			f.Level, f.Advice = LevelBlocks, "let gardener-operator finish this step: Pergola does not know its labels on rewritten objects"
		case slices.Contains(rewritePhases, phase):
			f.Level, f.Advice = LevelChanges, "nothing to do: the first apply continues this step, and has gardenlets switch to the new credentials"
		case phase != string(gardencorev1beta1.RotationCompleted):
			f.Advice = "complete it when clients use the new credentials, before or after the takeover"
		}
		r.add(f)
	}
}
