// SPDX-License-Identifier: Apache-2.0

package why

import (
	"time"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/source/blame"
)

// Answer is the result for one object or field on one cluster.
type Answer struct {
	// Subject is inlined in JSON.
	Subject Subject `json:"-"`
	// Value is the value in Git; it is nil if Git does not declare the field.
	Value *Value `json:"value,omitempty"`
	// Owner, Component and Bundle are the owner, the component and the bundle of a rendered object;
	// it is "" for a declared one.
	Owner     string `json:"owner,omitempty"`
	Component string `json:"component,omitempty"`
	Bundle    string `json:"bundle,omitempty"`
	// ManagedResource is the ManagedResource with the bundle, NAMESPACE/NAME, and its class; it is
	// "" if the bundle is applied directly.
	ManagedResource string `json:"managedResource,omitempty"`
	Class           string `json:"class,omitempty"`
	// Inventory is the ConfigMap with the objects of a direct bundle or of the declarations.
	Inventory string `json:"inventory,omitempty"`
	// Manager is the field manager that applies the object.
	Manager string `json:"manager"`

	// WrittenAt are the places that write the field: the declaration, or template and overlays. The
	// last one takes effect.
	WrittenAt []Position `json:"written,omitempty"`
	// DerivedFrom are the fields that determine the value.
	DerivedFrom []SourceField `json:"from,omitempty"`
	// Image is set if the value contains an image of the catalogue.
	Image *Image `json:"image,omitempty"`
	// Live is the state in the cluster; it is nil if it was not read.
	Live *LiveState `json:"live,omitempty"`
	// Notes have missing information and hints.
	Notes []string `json:"notes,omitempty"`
}

// Subject is the object, and its field, of an answer.
type Subject struct {
	Landscape string     `json:"landscape"`
	Cluster   string     `json:"cluster"`
	Object    change.Ref `json:"object"`
	// Field is the path as in plans: spec.template.spec.containers[name=app].image; it is "" for
	// the whole object.
	Field string `json:"field,omitempty"`
}

// MarshalJSON writes the fields of Asked before the others.
func (a Answer) MarshalJSON() ([]byte, error) {
	type fields Answer // without MarshalJSON
	return printable.JSON(struct {
		Subject
		fields
	}{a.Subject, fields(a)})
}

// Value is the value of a field. Secret values are omitted.
type Value struct {
	Value  any  `json:"value,omitempty"`
	Hidden bool `json:"hidden,omitempty"`
}

// Position is a position in a file.
type Position struct {
	// Kind is the kind of place: declaration, template, overlay, image vector, settings or facts.
	Kind string `json:"what"`
	File string `json:"file"`
	// Line and Column are 0 if unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// IsExact means that the line writes this field, not a field around it.
	IsExact bool `json:"exact"`
	// Layer is the layer of the landscape; it is "" for the landscape itself.
	Layer string `json:"layer,omitempty"`
	// Text is the text of the line in templates and overlays.
	Text string `json:"text,omitempty"`
	// Change is the commit that wrote the line.
	Change *blame.Result `json:"change,omitempty"`
}

// SourceField is a field of a declaration, the settings or the facts.
type SourceField struct {
	// Object is the declaration, such as "Garden local".
	Object string `json:"object"`
	Field  string `json:"field"`
	Value  *Value `json:"value,omitempty"`
	// Default is why the API sets the field, if Git does not have it.
	Default  string    `json:"default,omitempty"`
	Position *Position `json:"place,omitempty"`
}

// Image is the image of the catalogue.
type Image struct {
	Name      string `json:"name"`
	Reference string `json:"reference"`
	// Position is the entry in the image vector or in spec.images of the landscape.
	Position Position `json:"place"`
}

// Verdicts on a field in a cluster.
const (
	// VerdictMissing means that the object or field is missing.
	VerdictMissing = "missing"
	// VerdictSame means that the value is that of Git.
	VerdictSame = "same"
	// VerdictDiffers although we own the field: drift, or a revision that is not applied yet.
	VerdictDiffers = "differs"
	// VerdictOtherManager own the field with another value.
	VerdictOtherManager = "others"
	// VerdictHandedOver means that a controller owns the value now.
	VerdictHandedOver = "handedOver"
	// VerdictUndeclared means that Git does not declare the field.
	VerdictUndeclared = "undeclared"
	// VerdictUnknown means that Git's value depends on facts that only the cluster has.
	VerdictUnknown = "unknown"
	// VerdictUnreachable cluster, see the message.
	VerdictUnreachable = "unreachable"
)

// LiveState is the state in a cluster.
type LiveState struct {
	Verdict string `json:"verdict"`
	Message string `json:"message"`
	Value   *Value `json:"value,omitempty"`
	// Managers own the field or fields in it.
	Managers []Manager `json:"managers,omitempty"`
	// HandedOver are the declared fields at or below the path that controllers own.
	HandedOver []change.HandedOver `json:"handedOver,omitempty"`
	// Origin is the owner in the object's annotation.
	Origin string `json:"origin,omitempty"`
}

// Manager is a field manager.
type Manager struct {
	Name      string     `json:"name"`
	Operation string     `json:"operation"`
	Time      *time.Time `json:"time,omitempty"`
	// IsPart means that it owns only fields inside the field.
	IsPart bool `json:"part,omitempty"`
	// IsOurs means that it is a manager of Pergola.
	IsOurs bool `json:"ours,omitempty"`
}
