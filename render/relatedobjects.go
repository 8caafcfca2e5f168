// SPDX-License-Identifier: Apache-2.0

package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas/mutation"
)

// relatedObjects gives mutations the declarations of a landscape that may shape a render. It
// implements mutation.ObjectLister. Declarations that it omits cannot change a render, so equal
// digests mean equal surroundings.
type relatedObjects struct {
	byKind map[schema.GroupKind][]*landscapes.Declaration
	byName map[objectName]*landscapes.Declaration
}

type objectName struct {
	kind            schema.GroupKind
	namespace, name string
}

// RelatedObjectsOfShoots gives mutations the declarations that shape the render of a Shoot.
func RelatedObjectsOfShoots(l *landscapes.Landscape) mutation.ObjectLister {
	return relatedObjectsOfShoots(l)
}

// relatedObjectsOfOwners serves Gardens, Seeds and Projects.
func relatedObjectsOfOwners(l *landscapes.Landscape) relatedObjects {
	return newRelatedObjects(l, mutation.ReadKinds())
}

// relatedObjectsOfShoots serves Shoots: it has no other Shoot, and no object that exists for only
// one Shoot.
func relatedObjectsOfShoots(l *landscapes.Landscape) relatedObjects {
	core := func(kind string) schema.GroupKind {
		return schema.GroupKind{Group: gardencorev1beta1.SchemeGroupVersion.Group, Kind: kind}
	}
	return newRelatedObjects(l, []schema.GroupKind{
		core("CloudProfile"), core("NamespacedCloudProfile"), core("ControllerRegistration"), core("ExposureClass"), core("Project"), core("Seed"),
		{Group: operatorv1alpha1.SchemeGroupVersion.Group, Kind: "Extension"}, kindSecret,
	})
}

var kindSecret = schema.GroupKind{Kind: "Secret"}

func newRelatedObjects(l *landscapes.Landscape, kinds []schema.GroupKind) relatedObjects {
	a := relatedObjects{byKind: make(map[schema.GroupKind][]*landscapes.Declaration, len(kinds)), byName: map[objectName]*landscapes.Declaration{}}
	for _, kind := range kinds {
		a.byKind[kind] = nil
	}
	for i := range l.Declarations {
		d := &l.Declarations[i]
		id := objectName{d.GroupVersionKind().GroupKind(), d.Namespace(), d.Name()}
		if _, shown := a.byKind[id.kind]; !shown || id.kind == kindSecret && id.namespace != gardencorev1beta1.GardenNamespace {
			continue // only the Secrets of default domains matter
		}
		a.byKind[id.kind] = append(a.byKind[id.kind], d)
		a.byName[id] = d
	}
	return a
}

func (a relatedObjects) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	if d := a.byName[objectName{kind, namespace, name}]; d != nil {
		return d.Object()
	}
	return nil
}

func (a relatedObjects) List(kind schema.GroupKind) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, d := range a.byKind[kind] {
		objects = append(objects, d.Object())
	}
	return objects
}

// digest covers all declarations of a in their order. It does not read declarations whose digest
// the landscape knows.
func (a relatedObjects) digest() InputDigest {
	d := newDigester()
	for _, kind := range sortedKinds(a.byKind) {
		for _, declaration := range a.byKind[kind] {
			in := declaration.Input()
			d.add(kind.Group, kind.Kind, declaration.Namespace(), declaration.Name(), in.Digest())
		}
	}
	return d.sum()
}
