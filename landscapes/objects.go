package landscapes

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
)

// FromObjects makes a landscape of objects that an API server has, with settings that were checked
// before. It is the landscape that LoadFS reads from files with these objects, without files: FS
// and ConfigDeclaration are nil, and declarations and violations have no File. Metadata that only
// an API server sets stay. The violations name object and field; with an error among them, the
// landscape lacks objects. The landscape shares the objects, and nobody may change them.
func FromObjects(config landscapev1alpha1.Landscape, objects []*unstructured.Unstructured) (*Landscape, []schemas.Violation) {
	l := newLoader(context.Background(), nil, ".", Options{}) // it is for CUE files
	l.live, l.landscape.Config, l.landscape.Layers = true, &config, []string{"."}
	for _, o := range objects {
		for _, d := range l.declare("", content{object: o.Object, tree: func() *place { return nil }}) {
			if _, double := l.merged.add(d); double {
				l.reportField(&d, "metadata.name", schemas.TypeDuplicate, "landscape/duplicate", "the object is given twice; give it once")
			}
		}
	}
	return l.finish()
}
