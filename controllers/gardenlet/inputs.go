package gardenlet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/seedpublication"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
)

// fileConfig makes a folder of declarations a landscape.
const fileConfig = "landscape.yaml"

// sources are what an owner is rendered from besides the settings: a landscape of its own, with the owner and what it refers to. So
// one that cannot be read is in nobody else's way, and a change concerns only the owners that it reaches.
type sources struct {
	kind   string
	object *unstructured.Unstructured
	files  map[string][]byte
	// key is the same as long as nothing changed.
	key string
	// basis is all of it that comes from Git.
	basis string
	// isGarden says of a Seed that its cluster is the Garden's, too.
	isGarden bool
	// seedUID names things outside of the clusters, as the UID of the object does.
	seedUID types.UID
}

// sourcesOf an owner of the virtual garden.
func (g *Gardenlet) sourcesOf(kind string, object *unstructured.Unstructured, s *settings) (sources, error) {
	out := sources{kind: kind, object: object, files: map[string][]byte{
		fileConfig: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata:\n  name: garden\n"),
	}}
	if s.gardenAPI == landscapev1alpha1.GardenAPIAggregated {
		out.files[fileConfig] = fmt.Appendf(out.files[fileConfig], "spec:\n  gardenAPI: %s\n", s.gardenAPI)
	}
	if len(s.domains) > 0 {
		out.files["default-domains.yaml"] = s.domains
	}
	around := append(g.objects.all(kindRegistration), object)
	if kind == owner.Shoot {
		around = append(around, g.around(object)...)
	}
	for _, o := range around {
		if o == nil {
			continue
		}
		text, err := json.Marshal(landscape.DeclarationOf(o).Object)
		if err != nil {
			return out, fmt.Errorf("reading %s: %w", apply.RefOf(o), err)
		}
		out.files[o.GetKind()+"-"+o.GetName()+".json"] = text
	}
	out.basis = basisOf(s.digests[kind], around)
	if seed := g.objects.get(kindSeed, "", g.Seed); seed != nil {
		out.seedUID = seed.GetUID()
	}
	g.mu.Lock()
	out.isGarden = kind == owner.Seed && g.isGarden
	g.mu.Unlock()
	sum := sha256.New()
	fmt.Fprintln(sum, s.digests[kind], object.GetUID(), out.seedUID, out.isGarden)
	for _, name := range slices.Sorted(maps.Keys(out.files)) {
		fmt.Fprintf(sum, "%q %d\n", name, len(out.files[name]))
		sum.Write(out.files[name])
	}
	out.key = hex.EncodeToString(sum.Sum(nil))
	return out, nil
}

// around gives what a Shoot is rendered with.
func (g *Gardenlet) around(shoot *unstructured.Unstructured) []*unstructured.Unstructured {
	text := func(o *unstructured.Unstructured, path ...string) string {
		if o == nil {
			return ""
		}
		value, _, _ := unstructured.NestedString(o.Object, path...)
		return value
	}
	out := []*unstructured.Unstructured{g.objects.get(kindSeed, "", g.Seed)}
	for _, p := range g.objects.all(kindProject) {
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

// input renders nothing yet: it fills in what the API fills in, and finds what is missing.
func (g *Gardenlet) input(ctx context.Context, from sources) (render.Input, error) {
	files, err := seedpublication.FS(from.files)
	if err != nil {
		return render.Input{}, err
	}
	l, violations, err := landscapes.LoadFS(ctx, files, ".", landscapes.Options{Live: true})
	if err == nil {
		err = refused(violations)
	}
	if err != nil {
		return render.Input{}, fmt.Errorf("reading it from the virtual garden: %w", err)
	}
	inputs, err := render.Owners(l, render.At(g.Clock.Now()))
	if err != nil {
		return render.Input{}, err
	}
	for _, in := range inputs {
		if in.Owner.Kind == from.kind && in.Owner.Namespace == from.object.GetNamespace() && in.Owner.Name == from.object.GetName() {
			in.Declared, in.Owner.UID, in.SeedIsGarden = "", string(from.object.GetUID()), from.isGarden
			if from.kind == owner.Shoot {
				in.Objects = withSeedUID(in.Objects, from.seedUID)
			}
			return in, nil
		}
	}
	return render.Input{}, fmt.Errorf("%s %s is not among the owners of this seed", from.object.GetKind(), from.object.GetName())
}

// withSeedUID gives the Seed that a Shoot sees its UID: backups are named after it.
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
