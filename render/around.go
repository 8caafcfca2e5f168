package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// around shows to mutations what of a landscape may shape a render, and reads what they ask for. It
// implements mutation.Around. What it does not show cannot shape one: so its digest says whether
// what stands around an owner is the same.
type around struct {
	byKind map[schema.GroupKind][]*landscapes.Declaration
	byName map[objectName]*landscapes.Declaration
}

type objectName struct {
	kind            schema.GroupKind
	namespace, name string
}

// AroundShoots shows to mutations what of a landscape shapes the render of a Shoot.
func AroundShoots(l *landscapes.Landscape) mutation.Around { return aroundShoots(l) }

// aroundAll is what Gardens, Seeds and Projects see.
func aroundAll(l *landscapes.Landscape) around { return newAround(l, mutation.Reads()) }

// aroundShoots is what Shoots see: no other Shoot, and nothing that is there for one of them alone.
func aroundShoots(l *landscapes.Landscape) around {
	core := func(kind string) schema.GroupKind {
		return schema.GroupKind{Group: gardencorev1beta1.SchemeGroupVersion.Group, Kind: kind}
	}
	return newAround(l, []schema.GroupKind{
		core("CloudProfile"), core("NamespacedCloudProfile"), core("ControllerRegistration"), core("ExposureClass"), core("Project"), core("Seed"),
		{Group: operatorv1alpha1.SchemeGroupVersion.Group, Kind: "Extension"}, kindSecret,
	})
}

var kindSecret = schema.GroupKind{Kind: "Secret"}

func newAround(l *landscapes.Landscape, kinds []schema.GroupKind) around {
	a := around{byKind: make(map[schema.GroupKind][]*landscapes.Declaration, len(kinds)), byName: map[objectName]*landscapes.Declaration{}}
	for _, kind := range kinds {
		a.byKind[kind] = nil
	}
	for i := range l.Declarations {
		d := &l.Declarations[i]
		id := objectName{d.GroupVersionKind().GroupKind(), d.Namespace(), d.Name()}
		if _, shown := a.byKind[id.kind]; !shown || id.kind == kindSecret && id.namespace != gardencorev1beta1.GardenNamespace {
			continue // of Secrets only default domains are looked at
		}
		a.byKind[id.kind] = append(a.byKind[id.kind], d)
		a.byName[id] = d
	}
	return a
}

func (a around) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if d := a.byName[objectName{kind, namespace, name}]; d != nil {
		return d.Object()
	}
	return nil
}

func (a around) List(kind schema.GroupKind) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, d := range a.byKind[kind] {
		objects = append(objects, d.Object())
	}
	return objects
}

// digest is that of all that is shown, in its order. No content is read for it where the landscape
// knows the digest.
func (a around) digest() InputDigest {
	d := newDigester()
	for _, kind := range sortedKinds(a.byKind) {
		for _, declaration := range a.byKind[kind] {
			in := declaration.Input()
			d.add(kind.Group, kind.Kind, declaration.Namespace(), declaration.Name(), in.Digest())
		}
	}
	return d.sum()
}
