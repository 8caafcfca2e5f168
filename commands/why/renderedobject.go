// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/controllers/resourcemanager/managedresource"
	"github.com/pergola-dev/pergola/render"
	"github.com/pergola-dev/pergola/render/strict"
)

// answerRendered answers for a rendered object.
func (e *explainer) answerRendered(ctx context.Context, a *Answer, m objectMatch, list steps) error {
	e.setBundle(a, m)
	probe := newProbe(e, m, list)
	a.WrittenAt = []Position{e.templatePosition(m, list)}
	if m.origin.Overlay != "" {
		for _, place := range e.overlayPositions(probe, m, list) {
			if !slices.Contains(a.WrittenAt, place) { // the overlay that adds the object
				a.WrittenAt = append(a.WrittenAt, place)
			}
		}
	}
	e.addImage(a, m, list)
	e.addFacts(a, m, list)
	e.addEnabledSetting(a, m)
	if err := e.addInfluences(ctx, a, probe); err != nil {
		return fmt.Errorf("find the origin of %s of %s: %w", fieldOrObject(list), a.Subject.Object, err)
	}
	return nil
}

func fieldOrObject(list steps) string {
	if len(list) == 0 {
		return "the object"
	}
	return list.String()
}

// setBundle sets how the object is delivered.
func (e *explainer) setBundle(a *Answer, m objectMatch) {
	b := m.bundle
	a.Owner, a.Component, a.Bundle = b.Owner.String(), b.Component, b.Name
	if b.Delivery.Direct {
		a.Manager = owner.FieldManager
		a.Inventory = path.Join(owner.InventoryNamespace, owner.InventoryPrefix+strings.ReplaceAll(strings.ReplaceAll(b.Owner.String(), " ", "."), "/", ".")+"."+b.Name)
		return
	}
	a.ManagedResource, a.Class = path.Join(b.Namespace, b.Name), b.Delivery.Class
	a.Manager = managedresource.FieldManager(b.Delivery.Class)
}

// addImage sets the image of the catalogue that the field contains.
func (e *explainer) addImage(a *Answer, m objectMatch, list steps) {
	value, ok := list.value(m.object.Object)
	text, isText := value.(string)
	if !ok || !isText || text == "" {
		return
	}
	vector, err := render.ReadImageVector(e.opts.Catalogue)
	if err != nil {
		return
	}
	role := render.ClusterSeed
	if m.input.Owner.Kind == "garden" {
		role = render.ClusterRuntime
	}
	runtime := m.input.Facts.Clusters[role].KubernetesVersion
	if runtime == "" {
		runtime = render.DefaultKubernetesVersion
	}
	target := m.input.TargetVersion
	if target == "" {
		target = runtime
	}
	images, err := render.ResolveImages(vector, e.renderOptions.ImageOverrides, runtime, target)
	if err != nil {
		return
	}
	for _, name := range sortedKeys(images) {
		if images[name] != text {
			continue
		}
		a.Image = &Image{Name: name, Reference: text, Position: e.vectorPosition(name, text)}
		for i := len(e.landscape.Config.Spec.Images) - 1; i >= 0; i-- {
			if o := e.landscape.Config.Spec.Images[i]; o.Name == name && e.landscape.ConfigDeclaration != nil {
				a.Image.Position = e.positionIn(positionSettings, e.landscape.ConfigDeclaration.Position(fmt.Sprintf("spec.images[%d]", i)))
				a.Image.Position.IsExact = true
				break
			}
		}
		return
	}
}

// vectorPosition returns the entry of the image vector; among several of one name, the one with the
// repository and tag of the reference.
func (e *explainer) vectorPosition(name, reference string) Position {
	p := Position{Kind: positionImageVector, File: "components/" + render.ImageVectorFile}
	lines := e.catalogueLines(render.ImageVectorFile)
	best := 0
	for i, line := range lines {
		text := strings.TrimPrefix(strings.TrimSpace(line), "- ")
		if text != "name: "+name && text != `name: "`+name+`"` {
			continue
		}
		if best == 0 {
			best = i + 1
		}
		for _, next := range lines[i+1 : min(i+8, len(lines))] {
			field, value, _ := strings.Cut(strings.TrimSpace(next), ": ")
			if strings.HasPrefix(strings.TrimSpace(next), "- ") {
				break
			}
			if field == "tag" && strings.HasSuffix(reference, strings.Trim(value, `"`)) {
				best = i + 1
			}
		}
	}
	p.Line, p.IsExact = best, best > 0
	return p
}

// addFacts adds the facts in the value, which are symbolic here and resolved in the cluster.
func (e *explainer) addFacts(a *Answer, m objectMatch, list steps) {
	value, ok := list.value(m.object.Object)
	if !ok || len(list) == 0 {
		return
	}
	text := fmt.Sprint(value)
	for _, unresolved := range m.bundle.Unresolved {
		if name, isSecret := strings.CutPrefix(unresolved, "secret "); isSecret && strings.Contains(text, name+"-") && strings.Contains(text, strict.SymbolicMark) {
			a.DerivedFrom = append(a.DerivedFrom, SourceField{Object: "facts of " + m.input.Owner.String(), Field: unresolved, Default: "known only in the cluster: shown as …" + strict.SymbolicMark + " here"})
		}
	}
}

// addEnabledSetting adds the setting of the landscape that enables the component.
func (e *explainer) addEnabledSetting(a *Answer, m objectMatch) {
	if _, named := e.renderOptions.Enabled[m.bundle.Component]; !named || e.landscape.ConfigDeclaration == nil {
		return
	}
	kind, name, _ := strings.Cut(m.bundle.Component, "/")
	field := fmt.Sprintf("spec.components.%s.%s.enabled", kind, name)
	p := e.positionIn(positionSettings, e.landscape.ConfigDeclaration.Position(field))
	p.IsExact = true
	a.DerivedFrom = append(a.DerivedFrom, SourceField{Object: "Landscape " + a.Subject.Landscape, Field: field, Value: &Value{Value: true}, Position: &p})
}
