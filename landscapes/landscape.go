package landscapes

import (
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/schemas/kept"
)

// Landscape is what a landscape folder says, with its layers merged.
type Landscape struct {
	// Dir is the folder as the caller named it.
	Dir string
	// FS is the repository and Path the landscape folder inside it. Overlays are read through FS.
	// It refuses paths and links that leave the repository, and stays open as long as it is
	// referred to. FS is nil for a landscape FromObjects.
	FS   fs.FS
	Path string
	// Config is landscape.yaml, merged onto those of the layers; never nil.
	Config *landscapev1alpha1.Landscape
	// ConfigDeclaration is the same as a declaration, with its places; nil if landscape.yaml could
	// not be read, and for a landscape FromObjects.
	ConfigDeclaration *Declaration
	// Declarations are the objects, in the order in which files and layers are read: bases first,
	// files by name.
	Declarations []Declaration
	// Incomplete says that there are more of them, in files that cannot be read or are of no known
	// kind.
	Incomplete bool
	// LacksLayer reports whether a layer is missing, for which there is a finding. Declarations are
	// not judged then: nearly all would be found wrong.
	LacksLayer bool
	// Operations are the one-shot operations of operations/, by the names of their files.
	Operations []Operation
	// Overlays are the folders components/OWNER/COMPONENT of the layers and the landscape, bases
	// first.
	Overlays []Overlay
	// Layers are the folders that were merged, bases first, relative to the landscape folder; "."
	// is the landscape.
	Layers []string

	// Keys are the age keys that encrypted Secrets were tried with, in their public form (age1…).
	Keys []string

	// kept is where results of validation stay between runs.
	kept *kept.Store
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
		if d.kind.GroupKind() == kind && d.namespace == namespace && d.name == name {
			return d, true
		}
	}
	return nil, false
}

// identity tells objects apart. The version is not part of it: one object may be written in several
// versions.
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
