package render

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/health/custom"
	"github.com/pergola-dev/pergola/render/strict"
	"github.com/pergola-dev/pergola/schemas"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// healthFields finds fields in rules of health that the kind does not have: no object of it would ever be healthy, or progressing.
func (c *landscapeCheck) healthFields() {
	health := c.landscape.Config.Spec.Health
	if health == nil || c.rendering == nil {
		return
	}
	known := newKinds(*c.rendering)
	for i, rule := range health.Rules {
		versions := known.versions(rule.APIGroup, rule.Kind)
		if len(versions) == 0 {
			continue
		}
		for _, e := range []struct{ field, text string }{{"healthy", rule.Healthy}, {"progressing", rule.Progressing}, {"message", rule.Message}} {
			var told []string
			for _, path := range custom.Fields(e.text) {
				wrong := ""
				for _, version := range versions { // the rule is for all of them
					if wrong = noField(version.Root, path); wrong == "" {
						break
					}
				}
				if wrong != "" && !slices.Contains(told, wrong) {
					told = append(told, wrong)
					c.configWarning(fmt.Sprintf("spec.health.rules[%d].%s", i, e.field), ruleHealthFields, schemas.TypeNotSupported, "objects of kind %s %s", rule.Kind, wrong)
				}
			}
		}
	}
}

// noField says which field of a path the schema does not have, "" if it has all, or leaves them open.
func noField(n *structure.Node, path []string) string {
	for i, name := range path {
		next := n.Properties[name]
		switch {
		case next != nil:
		case n.Additional != nil:
			next = n.Additional
		case n.Open || len(n.Properties) == 0:
			return ""
		default:
			hint := "; it has " + strings.Join(n.Names(), ", ")
			if meant := structure.Suggest(name, n.Names()); meant != "" {
				hint = fmt.Sprintf("; did you mean %q?", meant)
			}
			return fmt.Sprintf("have no field self.%s%s", strings.Join(path[:i+1], "."), hint)
		}
		n = next
	}
	return ""
}

// versions are the schemas of a kind in all versions of a group that are known.
func (k *kinds) versions(group, kind string) []*strict.Kind {
	var out []*strict.Kind
	for _, gvk := range strict.KubernetesKinds() {
		if gvk.Group == group && gvk.Kind == kind {
			if found := k.of(gvk); found != nil {
				out = append(out, found)
			}
		}
	}
	k.plurals(group) // reads all there is
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, defined := range []map[schema.GroupVersionKind]*strict.Kind{k.groups[group], k.charts, k.added} {
		for gvk, found := range defined {
			if gvk.Group == group && gvk.Kind == kind {
				out = append(out, found)
			}
		}
	}
	return out
}
