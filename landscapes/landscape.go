// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"io/fs"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// Landscape is the content of a landscape folder, with its layers merged.
type Landscape struct {
	// Dir is the folder as the caller named it.
	Dir string
	// FS is the repository and Path the landscape folder inside it. Overlays are read through FS.
	// It refuses paths and links that leave the repository, and stays open while referenced. FS is
	// nil for a landscape FromObjects.
	FS   fs.FS
	Path string
	// Config is landscape.yaml, merged onto the files of the layers; never nil.
	Config *landscapev1alpha1.Landscape
	// ConfigDeclaration is Config as a declaration, with its places; it is nil if landscape.yaml is
	// unreadable, and for a landscape FromObjects.
	ConfigDeclaration *Declaration
	// Declarations are the objects in reading order: bases first, files by name.
	Declarations []Declaration
	// Incomplete reports whether declarations are missing because of an unreadable file or an
	// unknown kind.
	Incomplete bool
	// IsLayerMissing reports whether a layer is missing, which has a finding. Declarations are not
	// validated then: nearly all would have errors.
	IsLayerMissing bool
	// Operations are the one-shot operations of operations/, by the names of their files.
	Operations []Operation
	// Overlays are the folders components/OWNER/COMPONENT of the layers and the landscape, bases
	// first.
	Overlays []Overlay
	// Layers are the merged folders, bases first, relative to the landscape folder; "." is the
	// landscape.
	Layers []string

	// Keys are the age keys used for decryption, in their public form (age1…).
	Keys []string

	// resultCache stores validation results between runs.
	resultCache *resultcache.Store
}

// Overlay is a Kustomize overlay for one component.
type Overlay struct {
	Owner, Component string
	// Path is the folder in Landscape.FS.
	Path string
	// Layer is the layer that contains it, as in Landscape.Layers.
	Layer string
}

// Find returns the declaration of an object.
func (l *Landscape) Find(kind schema.GroupKind, namespace, name string) (*Declaration, bool) {
	for i := range l.Declarations {
		d := &l.Declarations[i]
		if d.kind.GroupKind() == kind && d.namespace == namespace && d.name == name {
			return d, true
		}
	}
	return nil, false
}

// identity identifies an object. It has no version, because an object may be declared in any
// version.
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
