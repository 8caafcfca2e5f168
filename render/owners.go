// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1 "github.com/pergola-dev/pergola/api/core/v1"
	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// Owners builds the inputs of every owner in a landscape: the Garden, the Seeds, then the Shoots
// that are bound to one of them. It applies API defaults and the API's changes from other objects
// of the landscape (package mutation). Facts are the recorded ones; the rest stays symbolic.
func Owners(l *landscapes.Landscape, settings ...Setting) ([]Input, error) {
	inputs, err := validOwners(l, settingsOf(settings))
	if err != nil {
		return nil, err
	}
	return inputs, nil
}

// validOwners is Owners, but returns the valid owners together with the errors.
func validOwners(l *landscapes.Landscape, settings settings) ([]Input, error) {
	var inputs []Input
	var problems []error
	for in, err := range eachOwner(l, settings, func() bool { return settings.hasKind("shoot") }) {
		if err != nil {
			problems = append(problems, err)
		} else if settings.hasKind(in.Owner.Kind) {
			inputs = append(inputs, in)
		}
	}
	return inputs, errors.Join(problems...)
}

// eachOwner yields the owners, with an error for each that cannot be built. Shoots come last, and
// are read one by one while shoots returns true.
func eachOwner(l *landscapes.Landscape, settings settings, shoots func() bool) iter.Seq2[Input, error] {
	return func(yield func(Input, error) bool) {
		facts, err := RecordedFacts(l)
		if err != nil && !yield(Input{}, err) {
			return
		}
		b := newOwnerBuilder(l, settings)
		for in, err := range b.each(shoots) {
			in.Facts = facts[in.Owner.String()]
			if !yield(in, err) {
				return
			}
		}
	}
}

type ownerBuilder struct {
	landscape *landscapes.Landscape
	mutations *mutation.Mutator
	// shootObjects has the objects that Shoots see through shootMutations.
	shootObjects   relatedObjects
	shootMutations *mutation.Mutator
	garden         map[string]any
	seeds          map[string]map[string]any
	// seedChanges are the changes of mutations to Seeds.
	seedChanges map[string][]mutation.Change
	projects    map[string]map[string]any
	profiles    map[string]*gardencorev1beta1.CloudProfile
	// projectOf is the project by its namespace.
	projectOf             map[string]string
	referenceDeclarations referenceDeclarations
	// charts pulls charts of Extensions; nil disables it.
	charts    func([]gardencorev1.OCIRepository) map[string]Chart
	gardenAPI landscapev1alpha1.GardenAPI
	gates     *landscapev1alpha1.FeatureGates
}

// each yields the owners without facts.
func (b *ownerBuilder) each(shoots func() bool) iter.Seq2[Input, error] {
	return func(yield func(Input, error) bool) {
		first, err := b.gardenAndSeeds()
		if err != nil && !yield(Input{}, err) {
			return
		}
		for _, in := range first {
			if !yield(in, nil) {
				return
			}
		}
		if !shoots() {
			return
		}
		for s, err := range b.landscape.EachShoot() {
			var in Input
			ok := false
			if err == nil {
				in, ok, err = b.shoot(s, nil)
			}
			if (ok || err != nil) && !yield(in, err) || !shoots() {
				return
			}
		}
	}
}

func (b *ownerBuilder) gardenAndSeeds() ([]Input, error) {
	var inputs []Input
	var problems []error
	garden, declaration, err := b.landscape.Garden()
	problems = append(problems, err)
	if garden != nil {
		operatorv1alpha1.SetDefaults_Garden(garden)
		if b.garden, err = toMap(garden); err != nil {
			return nil, err
		}
		versionErr := checkVersion(declaration, "spec.virtualCluster.kubernetes.version", garden.Spec.VirtualCluster.Kubernetes.Version)
		problems = append(problems, versionErr)
		in := Input{
			Owner:               Owner{Kind: "garden", Name: garden.Name, UID: string(garden.UID), ControlPlaneNamespace: "garden"},
			Objects:             map[string]map[string]any{"garden": b.garden},
			GardenAPI:           b.gardenAPI,
			FeatureGates:        b.gates,
			Extensions:          extensionsIn(b.landscape),
			TargetVersion:       garden.Spec.VirtualCluster.Kubernetes.Version,
			DeclarationPosition: declaration.PositionText(),
		}
		in.MarkRequiredExtensions()
		if b.charts != nil {
			in.ChartsRequired, in.Charts = true, b.charts(in.RequiredCharts())
		}
		b.referenceDeclarations.addTo(&in)
		if versionErr == nil {
			inputs = append(inputs, in)
		}
	}
	problems = append(problems, b.readOtherObjects())
	seeds, _ := b.landscape.Seeds() // neighbours reports the error
	for _, s := range seeds {
		inputs = append(inputs, Input{
			Owner:   Owner{Kind: "seed", Name: s.Object.Name, UID: string(s.Object.UID), ControlPlaneNamespace: "garden"},
			Objects: b.withGarden("seed", b.seeds[s.Object.Name]), MutationChanges: b.seedChanges[s.Object.Name], DeclarationPosition: s.Declaration.PositionText(),
			GardenAPI: b.gardenAPI, FeatureGates: b.gates, SeedIsGarden: isGardenSeed(b.landscape.Config.Spec.Clusters, s.Object.Name),
		})
	}
	return inputs, errors.Join(problems...)
}

// isGardenSeed reports whether a Seed and the runtime cluster are declared with the same access.
func isGardenSeed(clusters *landscapev1alpha1.Clusters, seed string) bool {
	if clusters == nil || clusters.Runtime == nil {
		return false
	}
	access, declared := clusters.Seeds[seed]
	return declared && reflect.DeepEqual(access, *clusters.Runtime)
}

// readOtherObjects reads the objects that owners see besides their own declaration.
func (b *ownerBuilder) readOtherObjects() error {
	b.seeds, b.projects, b.projectOf = map[string]map[string]any{}, map[string]map[string]any{}, map[string]string{}
	b.profiles, b.seedChanges = map[string]*gardencorev1beta1.CloudProfile{}, map[string][]mutation.Change{}
	seeds, err := b.landscape.Seeds()
	problems := []error{err}
	for _, s := range seeds {
		b.seedChanges[s.Object.Name] = b.mutations.MutateSeed(s.Object).Changes
		b.seeds[s.Object.Name], err = toMap(s.Object)
		problems = append(problems, err)
	}
	projects, err := b.landscape.Projects()
	problems = append(problems, err)
	for _, p := range projects {
		b.mutations.MutateProject(p.Object, nil)
		b.projects[p.Object.Name], err = toMap(p.Object)
		problems = append(problems, err)
		if p.Object.Spec.Namespace != nil {
			b.projectOf[*p.Object.Spec.Namespace] = p.Object.Name
		}
	}
	profiles, err := b.landscape.CloudProfiles()
	problems = append(problems, err)
	for _, p := range profiles {
		gardencorev1beta1.SetDefaults_CloudProfile(p.Object)
		b.profiles[p.Object.Name] = p.Object
	}
	return errors.Join(problems...)
}

func (b *ownerBuilder) withGarden(kind string, object map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{kind: object}
	if b.garden != nil {
		out["garden"] = b.garden
	}
	return out
}

// shoot builds the input of a Shoot; the result is false if it is not bound to a Seed and waits for
// the scheduler. It fills in the object. Open fields keep the values of before, which is the Shoot
// at an earlier time, or nil for a new one.
func (b *ownerBuilder) shoot(declared landscapes.TypedObject[gardencorev1beta1.Shoot], before *gardencorev1beta1.Shoot) (Input, bool, error) {
	s := declared.Object
	profile, profileErr := b.cloudProfile(declared)
	filled := b.shootMutations.MutateRenderedShoot(s, before)
	problems := []error{profileErr}
	const versionField = "spec.kubernetes.version"
	versionRefused := false
	for _, p := range filled.Problems {
		if p.NewOnly { // the rules report it
			continue
		}
		versionRefused = versionRefused || p.Field == versionField
		problems = append(problems, declaredFinding(declared.Declaration, p.Field, p.Rule, p.Message))
	}
	if !versionRefused {
		problems = append(problems, checkVersion(declared.Declaration, versionField, s.Spec.Kubernetes.Version), checkVersionComplete(declared.Declaration, versionField, s.Spec.Kubernetes.Version))
	}
	if s.Spec.SeedName == nil || *s.Spec.SeedName == "" {
		return Input{}, false, errors.Join(problems...)
	}
	seed, ok := b.seeds[*s.Spec.SeedName]
	if !ok {
		problems = append(problems, declaredFinding(declared.Declaration, "spec.seedName", ruleBinding,
			fmt.Sprintf("no Seed %q in this landscape", *s.Spec.SeedName)))
	}
	project, ok := b.projectOf[s.Namespace]
	if !ok {
		problems = append(problems, declaredFinding(declared.Declaration, "metadata.namespace", ruleBinding,
			fmt.Sprintf("no Project in this landscape has spec.namespace %q", s.Namespace)))
	}
	object, err := toMap(s)
	if err := errors.Join(append(problems, err)...); err != nil {
		return Input{}, false, err
	}
	objects := b.withGarden("shoot", object)
	objects["seed"], objects["project"] = seed, b.projects[project]
	if profile != nil {
		objects["cloudProfile"] = profile
	}
	in := Input{
		Owner: Owner{
			Kind: "shoot", Namespace: s.Namespace, Name: s.Name, UID: string(s.UID),
			ControlPlaneNamespace: TechnicalID(project, s.Name),
		},
		Objects: objects, GardenAPI: b.gardenAPI, FeatureGates: b.gates, TargetVersion: s.Spec.Kubernetes.Version, MutationChanges: filled.Changes, DeclarationPosition: declared.Declaration.PositionText(),
	}
	b.referenceDeclarations.addTo(&in)
	return in, true, nil
}

// checkVersion rejects a Kubernetes version that cannot select images and components.
func checkVersion(d *landscapes.Declaration, field, version string) error {
	if _, err := parseKubernetesVersion(version); err != nil {
		return declaredFinding(d, field, ruleVersion, fmt.Sprintf("%q is not a Kubernetes version such as %s", version, DefaultKubernetesVersion))
	}
	return nil
}

// checkVersionComplete rejects a version that is still incomplete after the API's changes.
func checkVersionComplete(d *landscapes.Declaration, field, version string) error {
	if !mutation.IsIncompleteVersion(version) {
		return nil
	}
	return declaredFinding(d, field, ruleVersion, fmt.Sprintf("%q leaves the version open, and neither the cloud profile nor the time selects one; write the full version, such as %s", version, DefaultKubernetesVersion))
}

// TechnicalID is the name of a shoot's namespace in its seed (gardener: status.technicalID).
func TechnicalID(project, shoot string) string {
	return "shoot--" + project + "--" + shoot
}

func toMap(object any) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	removeNulls(reflect.TypeOf(object), content)
	if meta, ok := content["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			if delete(annotations, annotationDeletionConfirmation); len(annotations) == 0 {
				delete(meta, "annotations")
			}
		}
	}
	return content, nil
}

// annotationDeletionConfirmation confirms to an API server that an object may be deleted. It is set
// and removed manually, in Git or in the cluster. Renders do not depend on it, such as the copy of
// a Shoot for extensions.
const annotationDeletionConfirmation = "confirmation.gardener.cloud/deletion"

// All renders every owner of a landscape; errors of one owner do not hide those of another.
func All(l *landscapes.Landscape, catalogue fs.FS, only func(Owner) bool, settings ...Setting) ([]Bundle, error) {
	options, err := LandscapeOptions(catalogue, l, settings...)
	if err != nil {
		return nil, err
	}
	inputs, err := Owners(l, settings...)
	if err != nil {
		return nil, err
	}
	seeds, err := SeedsOfShoots(l)
	if err != nil {
		return nil, err
	}
	if only != nil {
		inputs = slices.DeleteFunc(inputs, func(in Input) bool { return !only(in.Owner) })
	}
	results, problems := renderOwners(inputs, options)
	return checkResults(inputs, results, problems, catalogue, ClusterNamer(seeds))
}

// Partial renders the valid parts of an invalid landscape for comparisons. The result must never be
// applied.
func Partial(l *landscapes.Landscape, catalogue fs.FS, settings ...Setting) []Bundle {
	options := landscapeOptions(catalogue, l)
	options.Overlays = slices.DeleteFunc(options.Overlays, func(o Overlay) bool {
		_, err := o.loadFiles()
		return err != nil
	})
	inputs, _ := validOwners(l, settingsOf(settings))
	results, _ := renderOwners(inputs, options)
	var bundles []Bundle
	for _, result := range results {
		bundles = append(bundles, result.Bundles...)
	}
	return bundles
}

// checkFlows finds bundles that a flow of their owner omits: they would never be applied or never
// removed. A flow belongs to a kind of owner, so it uses one input of the kind.
func checkFlows(catalogue fs.FS, inputs []Input, bundles []Bundle) []error {
	byKind := map[string][]Bundle{}
	for _, b := range bundles {
		byKind[b.Owner.Kind] = append(byKind[b.Owner.Kind], b)
	}
	var problems []error
	checked := map[string]bool{}
	for _, in := range inputs {
		kind := in.Owner.Kind
		if checked[kind] || len(byKind[kind]) == 0 {
			continue
		}
		checked[kind] = true
		if _, err := ReconcileFlow(catalogue, in, byKind[kind]); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// ClusterNamer names the cluster of a bundle: a seed by its own name, the API server of a Shoot by
// the name of the Shoot.
func ClusterNamer(in map[string]string) func(Bundle) string {
	return func(b Bundle) string {
		switch {
		case b.Cluster == ClusterSeed && b.Owner.Kind == "seed":
			return b.Owner.Name
		case b.Cluster == ClusterSeed && b.Owner.Kind == "shoot":
			if seed, ok := in[b.Owner.Namespace+"/"+b.Owner.Name]; ok {
				return seed
			}
		case b.Cluster == ClusterShoot:
			return ShootCluster(b.Owner)
		}
		return b.Cluster
	}
}

// ShootCluster is the name of a Shoot's API server in plans, approvals and errors: objects of
// different Shoots have equal names.
func ShootCluster(shoot Owner) string { return shoot.String() }

// SeedsOfShoots maps "<namespace>/<name>" of each shoot to its seed.
func SeedsOfShoots(l *landscapes.Landscape) (map[string]string, error) {
	shoots, err := l.Shoots()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, s := range shoots {
		if s.Object.Spec.SeedName != nil {
			out[s.Object.Namespace+"/"+s.Object.Name] = *s.Object.Spec.SeedName
		}
	}
	return out, nil
}
