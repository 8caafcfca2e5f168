package why

import (
	"time"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/internal/printable"
	"github.com/pergola-dev/pergola/source/blame"
)

// Answer is all that is known about one object, or one field of it, on one cluster.
type Answer struct {
	// Asked stands beside the other fields in JSON.
	Asked Asked `json:"-"`
	// Value that Git comes to; nil if Git says nothing about the field.
	Value *Value `json:"value,omitempty"`
	// Owner, Component and Bundle are those of a rendered object, empty for one that Git declares
	// as it is.
	Owner     string `json:"owner,omitempty"`
	Component string `json:"component,omitempty"`
	Bundle    string `json:"bundle,omitempty"`
	// ManagedResource that carries the bundle, NAMESPACE/NAME with its class; empty where the
	// bundle is applied directly.
	ManagedResource string `json:"managedResource,omitempty"`
	Class           string `json:"class,omitempty"`
	// Inventory is the ConfigMap that lists the objects of a direct bundle or of the declarations.
	Inventory string `json:"inventory,omitempty"`
	// Manager is the field manager that applies it.
	Manager string `json:"manager"`

	// Written are the places that write the field: the declaration, or template and overlays, the
	// one that counts last.
	Written []Place `json:"written,omitempty"`
	// From are the fields that the value follows from.
	From []Source `json:"from,omitempty"`
	// Image is set where the value holds an image of the catalogue.
	Image *Image `json:"image,omitempty"`
	// Live is what the cluster says; nil where it was not asked.
	Live *Live `json:"live,omitempty"`
	// Notes say what could not be found out, and what else is to be known.
	Notes []string `json:"notes,omitempty"`
}

// Asked is the object, or the field of it, that an answer is about.
type Asked struct {
	Landscape string     `json:"landscape"`
	Cluster   string     `json:"cluster"`
	Object    change.Ref `json:"object"`
	// Field as plans write it: spec.template.spec.containers[name=app].image; empty for the object
	// as a whole.
	Field string `json:"field,omitempty"`
}

// MarshalJSON writes the fields of Asked before the others.
func (a Answer) MarshalJSON() ([]byte, error) {
	type fields Answer // without this method
	return printable.JSON(struct {
		Asked
		fields
	}{a.Asked, fields(a)})
}

// Value of a field. Those that are secret are not in it.
type Value struct {
	Value  any  `json:"value,omitempty"`
	Hidden bool `json:"hidden,omitempty"`
}

// Place in a file.
type Place struct {
	// What is declaration, template, overlay, image vector, settings or facts.
	What string `json:"what"`
	File string `json:"file"`
	// Line and Column are 0 where they are not known.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Exact tells that the line writes this very field, and not something around it.
	Exact bool `json:"exact"`
	// Layer of the landscape, where it is not the landscape itself.
	Layer string `json:"layer,omitempty"`
	// Text of the line, for templates and overlays.
	Text string `json:"text,omitempty"`
	// Change is the commit that wrote the line.
	Change *blame.Answer `json:"change,omitempty"`
}

// Source is a field of a declaration, of the settings or of the facts.
type Source struct {
	// Object is the declaration, "Garden local".
	Object string `json:"object"`
	Field  string `json:"field"`
	Value  *Value `json:"value,omitempty"`
	// Default tells that Git does not have the field: it is what the API fills in, for the reason
	// that is given.
	Default string `json:"default,omitempty"`
	Place   *Place `json:"place,omitempty"`
}

// Image of the catalogue.
type Image struct {
	Name      string `json:"name"`
	Reference string `json:"reference"`
	// Place is the entry of the image vector, or of spec.images of the landscape.
	Place Place `json:"place"`
}

// Verdicts about a field in a cluster.
const (
	// Missing object or field.
	Missing = "missing"
	// Same value as Git says.
	Same = "same"
	// Differs, though we own the field: drift, or a revision that is not applied yet.
	Differs = "differs"
	// Others own the field and keep another value.
	Others = "others"
	// HandedOver: a controller has set another value, which is its task; it stays.
	HandedOver = "handedOver"
	// Undeclared is a field that Git says nothing about.
	Undeclared = "undeclared"
	// Unknown: Git's value depends on facts that only the cluster knows.
	Unknown = "unknown"
	// Unreachable cluster, see the message.
	Unreachable = "unreachable"
)

// Live is what a cluster has.
type Live struct {
	Verdict string `json:"verdict"`
	Message string `json:"message"`
	Value   *Value `json:"value,omitempty"`
	// Managers own the field, or something in it.
	Managers []Manager `json:"managers,omitempty"`
	// HandedOver are the declared fields, at what was asked for or in it, that are left to
	// controllers.
	HandedOver []change.HandedOver `json:"handedOver,omitempty"`
	// Origin is who says to own the object, by annotation.
	Origin string `json:"origin,omitempty"`
}

// Manager of a field.
type Manager struct {
	Name      string     `json:"name"`
	Operation string     `json:"operation"`
	Time      *time.Time `json:"time,omitempty"`
	// Part tells that it owns something inside the field, and not the field itself.
	Part bool `json:"part,omitempty"`
	// Ours is a manager of Pergola.
	Ours bool `json:"ours,omitempty"`
}
