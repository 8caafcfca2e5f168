package across

import (
	"fmt"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// use is a value that only one object of a landscape may have.
type use struct{ what, value string }

// once notes who has a value, and reports it at everybody who comes later. Format begins with the arguments and ends with the
// place of the first.
func (c *check) once(what, value, field, format string, args ...any) {
	if value == "" {
		return
	}
	key := use{what, value}
	if first := c.uses[key]; first != nil && first != c.in {
		c.report(field, schemas.TypeDuplicate, format, append(args, place(first))...)
		return
	}
	c.uses[key] = c.in
	if c.noted != nil {
		c.noted.uses = append(c.noted.uses, key)
	}
}

// domains: nothing answers at one name for two. A trailing dot and the case of letters make no other name.
func (c *check) domains(patterns ...string) {
	for _, pattern := range patterns {
		each(c.object(), pattern, func(path string, value any) {
			if domain, ok := value.(string); ok {
				c.once("domain", strings.ToLower(strings.TrimSuffix(domain, ".")), path, "the domain %q is that of %s already", domain)
			}
		})
	}
}

func (c *check) projectNamespace() {
	namespace := text(c.object(), "spec", "namespace")
	c.once("namespace of a project", namespace, "spec.namespace", "the namespace %q is that of %s already", namespace)
}

// seedName: a Seed is registered by one gardenlet.
func (c *check) seedName() {
	name := c.name()
	c.once("gardenlet of a seed", name, "metadata.name", "the Seed %q has its gardenlet by %s already", name)
}

// offer is a kind and type of extension objects.
type offer struct{ kind, typ string }

// primary: one registration is responsible for a kind and type. Source: plugin/pkg/controllerregistration/resources.
func (c *check) primary() {
	for i, item := range list(c.object(), "spec", "resources") {
		r, ok := item.(map[string]any)
		if !ok || at(r, "primary") == false {
			continue
		}
		kind, typ := text(r, "kind"), text(r, "type")
		if kind == "" || typ == "" {
			continue
		}
		c.once("primary registration", kind+"/"+typ, fmt.Sprintf("spec.resources[%d]", i), "%s of type %q have a registration already, %s; set primary: false in one of them", kind, typ)
	}
}
