// SPDX-License-Identifier: Apache-2.0

package why

import (
	"path"
	"strings"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
)

// answerDeclared answers for a declared object.
func (e *explainer) answerDeclared(a *Answer, m objectMatch, list steps) {
	e.setInventory(a, m)
	a.WrittenAt = []Position{e.declaredPosition(m.declaration, list.declaredPath())}
	a.WrittenAt[0].IsExact = true
	if m.declaration.Secret == landscapes.SecretEncrypted && a.Value != nil {
		a.Value = &Value{Hidden: true}
		a.Notes = append(a.Notes, "the Secret is encrypted, and no key here opens it")
	}
}

func (e *explainer) setInventory(a *Answer, m objectMatch) {
	a.Manager = landscape.FieldManager
	a.Inventory = path.Join(owner.InventoryNamespace, owner.InventoryPrefix+"landscape."+a.Subject.Landscape+"."+m.cluster)
}

// declaredPosition returns the position of a declared field in the layer that sets it.
func (e *explainer) declaredPosition(d *landscapes.Declaration, field string) Position {
	p := d.Position(field)
	return e.positionIn(positionDeclaration, p)
}

func (e *explainer) positionIn(what string, p schemas.Position) Position {
	return Position{Kind: what, File: p.File, Line: p.Line, Column: p.Column, Layer: e.layerOf(p.File)}
}

// layerOf returns the layer of a file, or "" for the landscape itself.
func (e *explainer) layerOf(file string) string {
	best := ""
	for _, layer := range e.landscape.Layers {
		if layer != "." && strings.HasPrefix(file, layer+"/") && len(layer) > len(best) {
			best = layer
		}
	}
	return best
}

// answerDefaulted answers for a field that Git does not declare and the API sets from other objects
// or defaults. It reports whether there is one.
func (e *explainer) answerDefaulted(a *Answer, m objectMatch) bool {
	inputs, err := render.Owners(e.landscape, render.WithTime(e.opts.Now))
	if err != nil {
		return false
	}
	kind := strings.ToLower(a.Subject.Object.Kind)
	for i := range inputs {
		in := &inputs[i]
		if in.Owner.Kind != kind || in.Owner.Name != a.Subject.Object.Name || in.Owner.Namespace != a.Subject.Object.Namespace {
			continue
		}
		list, value, err := followPath(in.Objects[kind], m.path)
		if err != nil || len(list) == 0 {
			return false
		}
		a.Subject.Field, a.Value = list.String(), redactedValue(m.object, list, value)
		place := e.declaredPosition(m.declaration, list.declaredPath())
		a.WrittenAt = []Position{place}
		a.DerivedFrom = []SourceField{{Object: e.inputName(in, kind), Field: list.declaredPath(), Default: defaultReason(in, list), Value: a.Value}}
		return true
	}
	return false
}

// defaultReason says why a field exists that Git does not declare.
func defaultReason(in *render.Input, list steps) string {
	want := fieldpath.Parse(list.declaredPath())
	for _, change := range in.MutationChanges {
		have := fieldpath.Parse(change.Field)
		if len(have) > len(want) {
			continue
		}
		same := true
		for i := range have {
			same = same && fieldpath.StepName(have[i]) == fieldpath.StepName(want[i])
		}
		if same {
			return change.Reason
		}
	}
	return "the default of the API"
}

// inputName names an input object of an owner.
func (e *explainer) inputName(in *render.Input, object string) string {
	if d := e.inputDeclaration(in, object); d != nil {
		name := d.Name()
		if d.Namespace() != "" {
			name = d.Namespace() + "/" + name
		}
		return d.GroupVersionKind().Kind + " " + name
	}
	return object
}

// inputKinds are the kinds of the input objects of owners.
var inputKinds = map[string]string{"garden": "Garden", "seed": "Seed", "shoot": "Shoot", "project": "Project", "cloudProfile": "CloudProfile"}

// inputDeclaration finds the declaration of an owner's input object.
func (e *explainer) inputDeclaration(in *render.Input, object string) *landscapes.Declaration {
	meta, _ := in.Objects[object]["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	for i := range e.landscape.Declarations {
		d := &e.landscape.Declarations[i]
		if d.GroupVersionKind().Kind == inputKinds[object] && isGardener(d.GroupVersionKind().Group) && d.Name() == name && d.Namespace() == namespace {
			return d
		}
	}
	return nil
}
