// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
)

// FromObjects makes a landscape from objects of an API server, with settings that are already
// valid. It equals the result of LoadFS without files: FS and ConfigDeclaration are nil, and
// declarations and violations have no File. Server metadata are retained. With an error among the
// violations, objects are missing. The landscape shares the objects, which must not be changed.
func FromObjects(config landscapev1alpha1.Landscape, objects []*unstructured.Unstructured) (*Landscape, []schemas.Violation) {
	l := newLoader(context.Background(), nil, ".", Options{}) // the context is for CUE files
	l.keepsServerMetadata, l.landscape.Config, l.landscape.Layers = true, &config, []string{"."}
	for _, o := range objects {
		for _, d := range l.declare("", parsedObject{object: o.Object, tree: func() *positionTree { return nil }}) {
			if _, double := l.merged.add(d); double {
				l.reportField(&d, "metadata.name", schemas.TypeDuplicate, "landscape/duplicate", "the object is given twice; give it once")
			}
		}
	}
	return l.finish()
}
