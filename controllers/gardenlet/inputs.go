// SPDX-License-Identifier: Apache-2.0

package gardenlet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// renderSources are the inputs of an owner besides the settings: a landscape of its own with the
// owner and the objects it refers to. So an invalid owner blocks no other owner, and a change only
// concerns the owners that it affects.
type renderSources struct {
	kind   string
	object *unstructured.Unstructured
	// objects are the landscape's, owner included; gardenAPI is its only setting that matters.
	objects   []*unstructured.Unstructured
	gardenAPI landscapev1alpha1.GardenAPI
	// digest changes whenever an input changes.
	digest string
	// gitDigest is the digest of all inputs that come from Git.
	gitDigest string
	// isGarden reports whether the cluster of a Seed is also the Garden's.
	isGarden bool
	// seedUID is part of the names of objects outside the clusters, as the UID of the object is.
	seedUID types.UID
}

// renderSourcesOf returns the sources of an owner in the virtual garden.
func (g *Gardenlet) renderSourcesOf(kind string, object *unstructured.Unstructured, s *settings) renderSources {
	out := renderSources{kind: kind, object: object, gardenAPI: s.gardenAPI}
	around := append(g.objects.listKind(kindRegistration), object)
	if kind == owner.Shoot {
		around = append(around, g.referencedObjects(object)...)
	}
	for _, o := range around {
		if o != nil {
			out.objects = append(out.objects, landscape.DeclarationOf(o))
		}
	}
	out.objects = append(out.objects, s.domainSecrets...)
	out.gitDigest = gitDigestOf(s.digests[kind], around)
	if seed := g.objects.get(kindSeed, "", g.options.Seed); seed != nil {
		out.seedUID = seed.GetUID()
	}
	g.mu.Lock()
	out.isGarden = kind == owner.Seed && g.isGarden
	g.mu.Unlock()
	sum := sha256.New()
	fmt.Fprintln(sum, s.digests[kind], object.GetUID(), out.seedUID, out.isGarden)
	for _, o := range out.objects {
		_ = json.NewEncoder(sum).Encode(o.Object) // it was read from JSON
	}
	out.digest = hex.EncodeToString(sum.Sum(nil))
	return out
}

// referencedObjects returns the objects that a Shoot is rendered with.
func (g *Gardenlet) referencedObjects(shoot *unstructured.Unstructured) []*unstructured.Unstructured {
	text := func(o *unstructured.Unstructured, path ...string) string {
		if o == nil {
			return ""
		}
		value, _, _ := unstructured.NestedString(o.Object, path...)
		return value
	}
	out := []*unstructured.Unstructured{g.objects.get(kindSeed, "", g.options.Seed)}
	for _, p := range g.objects.listKind(kindProject) {
		if text(p, "spec", "namespace") == shoot.GetNamespace() {
			out = append(out, p)
		}
	}
	kind, name := text(shoot, "spec", "cloudProfile", "kind"), text(shoot, "spec", "cloudProfile", "name")
	if name == "" {
		name = text(shoot, "spec", "cloudProfileName")
	}
	if kind == kindNamespacedProfile {
		own := g.objects.get(kindNamespacedProfile, shoot.GetNamespace(), name)
		out, name = append(out, own), text(own, "spec", "parent", "name")
	}
	if name != "" {
		out = append(out, g.objects.get(kindCloudProfile, "", name))
	}
	if class := text(shoot, "spec", "exposureClassName"); class != "" {
		out = append(out, g.objects.get(kindExposureClass, "", class))
	}
	return out
}

// renderInput fills in the API's defaults and finds missing references; it does not render.
func (g *Gardenlet) renderInput(from renderSources) (render.Input, error) {
	config := landscapev1alpha1.Landscape{Spec: landscapev1alpha1.LandscapeSpec{GardenAPI: from.gardenAPI}}
	l, violations := landscapes.FromObjects(config, from.objects)
	if err := validationError(violations); err != nil {
		return render.Input{}, fmt.Errorf("reading it from the virtual garden: %w", err)
	}
	inputs, err := render.Owners(l, render.WithTime(g.options.Clock.Now()))
	if err != nil {
		return render.Input{}, err
	}
	for _, in := range inputs {
		if in.Owner.Kind == from.kind && in.Owner.Namespace == from.object.GetNamespace() && in.Owner.Name == from.object.GetName() {
			in.Owner.UID, in.SeedIsGarden = string(from.object.GetUID()), from.isGarden
			if from.kind == owner.Shoot {
				in.Objects = withSeedUID(in.Objects, from.seedUID)
			}
			return in, nil
		}
	}
	return render.Input{}, fmt.Errorf("%s %s is not among the owners of this seed", from.object.GetKind(), from.object.GetName())
}

// withSeedUID sets the UID of the Seed in a Shoot's input: backups are named after it.
func withSeedUID(objects map[string]map[string]any, uid types.UID) map[string]map[string]any {
	out := maps.Clone(objects)
	seed := maps.Clone(out[owner.Seed])
	metadata, _ := seed["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		return objects
	}
	metadata["uid"] = string(uid)
	seed["metadata"], out[owner.Seed] = metadata, seed
	return out
}
