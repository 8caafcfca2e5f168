package render

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/landscapes"
)

// around shows a landscape to mutations, and reads what they ask for. It implements mutation.Around.
type around struct {
	byKind map[schema.GroupKind][]*landscapes.Declaration
	byName map[objectName]*landscapes.Declaration
}

type objectName struct {
	kind            schema.GroupKind
	namespace, name string
}

func newAround(l *landscapes.Landscape) around {
	a := around{byKind: map[schema.GroupKind][]*landscapes.Declaration{}, byName: make(map[objectName]*landscapes.Declaration, len(l.Declarations))}
	for i := range l.Declarations {
		d := &l.Declarations[i]
		id := objectName{d.GroupVersionKind().GroupKind(), d.Namespace(), d.Name()}
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
