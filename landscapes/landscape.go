package landscapes

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/across"
)

// Landscape is what a landscape folder says, with its layers merged.
type Landscape struct {
	// Dir is the folder as the caller named it.
	Dir string
	// FS is the repository and Path the landscape folder inside it. Overlays are read through FS. It
	// refuses paths and links that leave the repository, and stays open as long as it is referred to.
	FS   fs.FS
	Path string
	// Config is landscape.yaml, merged onto those of the layers; never nil.
	Config *landscapev1alpha1.Landscape
	// ConfigDeclaration is the same as a declaration, with its places; nil if landscape.yaml could not be read.
	ConfigDeclaration *Declaration
	// Declarations are the objects, in the order in which files and layers are read: bases first, files by name.
	Declarations []Declaration
	// Overlays are the folders components/OWNER/COMPONENT of the layers and the landscape, bases first.
	Overlays []Overlay
	// Layers are the folders that were merged, bases first, relative to the landscape folder; "." is the landscape.
	Layers []string
}

// Overlay is a Kustomize overlay for one component.
type Overlay struct {
	Owner, Component string
	// Path is the folder, in Landscape.FS.
	Path string
	// Layer is the layer it comes from, as in Landscape.Layers.
	Layer string
}

// Find gives the declaration of an object.
func (l *Landscape) Find(kind schema.GroupKind, namespace, name string) (*Declaration, bool) {
	for i := range l.Declarations {
		d := &l.Declarations[i]
		if d.Object.GroupVersionKind().GroupKind() == kind && d.Object.GetNamespace() == namespace && d.Object.GetName() == name {
			return d, true
		}
	}
	return nil, false
}

// Validate checks all declarations of the landscape, each with the landscape around it, and what they are together.
func (l *Landscape) Validate(ctx context.Context, opts schemas.Options) ([]schemas.Violation, error) {
	return l.ValidateAt(ctx, time.Now(), opts)
}

// ValidateAt is Validate at another time: versions of cloud profiles expire.
func (l *Landscape) ValidateAt(ctx context.Context, now time.Time, opts schemas.Options) ([]schemas.Violation, error) {
	inputs := make([]schemas.Input, 0, len(l.Declarations)+1)
	around := &schemas.Surroundings{}
	for i := range l.Declarations {
		inputs = append(inputs, schemas.Input{Object: l.Declarations[i].Object, Positions: &l.Declarations[i]})
		around.Objects = append(around.Objects, l.Declarations[i].Object)
	}
	if l.ConfigDeclaration != nil {
		inputs = append(inputs, schemas.Input{Object: l.ConfigDeclaration.Object, Positions: l.ConfigDeclaration})
	}
	opts.Landscape = around
	found, err := schemas.Validate(ctx, inputs, opts)
	if err != nil {
		return nil, err
	}
	together := across.Options{Now: now}
	for _, e := range l.Config.Spec.External {
		together.External = append(together.External, across.External(e))
	}
	found = slices.Concat(WithForms(found), across.Check(inputs, together))
	schemas.Sort(found)
	return found, nil
}

// identity tells objects apart. The version is not part of it: one object may be written in several versions.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func (i identity) String() string {
	name := i.name
	if i.namespace != "" {
		name = i.namespace + "/" + name
	}
	return strings.TrimSuffix(i.kind.Kind+" "+name, " ")
}
