// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/landscapes"
)

// Defaulter fills in Seeds and Shoots like the API does and like Owners does for declared objects.
// It serves live objects that differ from their declaration. It is not safe for concurrent use.
type Defaulter struct{ owners *ownerBuilder }

// NewDefaulter returns a Filler for the objects of a landscape.
func NewDefaulter(l *landscapes.Landscape, settings ...Setting) *Defaulter {
	return &Defaulter{newOwnerBuilder(l, settingsOf(settings))}
}

// Default returns the content of a Seed or Shoot in the form of Input.Objects. It does not change
// the object.
func (f *Defaulter) Default(o *unstructured.Unstructured) (map[string]any, error) {
	if o.GetKind() == "Seed" {
		seed := &gardencorev1beta1.Seed{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, seed); err != nil {
			return nil, fmt.Errorf("reading Seed %s: %w", o.GetName(), err)
		}
		f.owners.mutations.MutateSeed(seed)
		return toMap(seed)
	}
	shoot := &gardencorev1beta1.Shoot{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, shoot); err != nil {
		return nil, fmt.Errorf("reading Shoot %s/%s: %w", o.GetNamespace(), o.GetName(), err)
	}
	var problems []error
	for _, p := range f.owners.shootMutations.MutateShootRevision(shoot, nil).Problems {
		problems = append(problems, fmt.Errorf("%s: %s", p.Field, p.Message))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return toMap(shoot)
}
