package across

import (
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// use is a value that only one object of a landscape may have.
type use struct{ what, value string }

// once notes who has a value, and reports it at everybody who comes later. Format begins with the
// arguments and ends with the place of the first.
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

// shootDomain: names below the domain of a Shoot are its own, so that no other one has a domain
// above or below. Source: plugin/pkg/shoot/validator.
func (c *check) shootDomain() {
	domain := strings.ToLower(strings.Trim(text(c.object(), "spec", "dns", "domain"), "."))
	if domain == "" {
		return
	}
	const field = "spec.dns.domain"
	if below := c.uses[use{aboveShootDomain, domain}]; below != nil && below != c.in {
		c.report(field, schemas.TypeForbidden, "the domain %q is above that of %s", domain, place(below))
		return
	}
	above := func(yield func(string) bool) {
		for _, rest, ok := strings.Cut(domain, "."); ok; _, rest, ok = strings.Cut(rest, ".") {
			if !yield(rest) {
				return
			}
		}
	}
	for parent := range above {
		if other := c.uses[use{shootDomain, parent}]; other != nil && other != c.in {
			c.report(field, schemas.TypeForbidden, "the domain %q is below %q, that of %s", domain, parent, place(other))
			return
		}
	}
	c.claim(use{shootDomain, domain})
	for parent := range above {
		c.claim(use{aboveShootDomain, parent})
	}
}

// A Shoot has one domain, and what is above it belongs to no other Shoot alone.
const (
	shootDomain      = "domain of a Shoot"
	aboveShootDomain = "above the domain of a Shoot"
)

// contradictions are uses of a value that exclude the same one by another object.
var contradictions = map[string]string{shootDomain: aboveShootDomain, aboveShootDomain: shootDomain, hostOf: belowRecord, belowRecord: hostOf}

// isShared tells whether several objects may have a value.
func (u use) isShared() bool {
	return u.what == aboveShootDomain || u.what == shootDomain || u.what == belowRecord
}

// claim notes who has a value, if nobody has it yet.
func (c *check) claim(u use) {
	if c.uses[u] == nil {
		c.uses[u] = c.in
	}
	if c.noted != nil {
		c.noted.uses = append(c.noted.uses, u)
	}
}

func (c *check) projectNamespace() {
	namespace := text(c.object(), "spec", "namespace")
	c.once("namespace of a project", namespace, "spec.namespace", "the namespace %q is that of %s already", namespace)
}

// namespaceLabelled: a namespace that is there already belongs to a Project by its labels;
// otherwise the Project fails.
func (c *check) namespaceLabelled() {
	in := c.find(identity{kind: kindNamespace, name: text(c.object(), "spec", "namespace")})
	if in == nil {
		return
	}
	if in.Content().GetAnnotations()[annotationCluster] == "runtime" {
		c.report("spec.namespace", schemas.TypeInvalid, "%s is put into the runtime cluster by its annotation %s, but the Project is in the virtual one; remove the annotation", place(in), annotationCluster)
	}
	// also beside one that is no text
	label := func(key string) any { return at(in.Content().Object, "metadata", "labels", key) }
	if label(gardencorev1beta1.GardenRole) != gardencorev1beta1.GardenRoleProject || label(gardencorev1beta1.ProjectName) != c.name() {
		c.report("spec.namespace", schemas.TypeInvalid, "%s does not have the labels %s: %s and %s: %s, so that the Project cannot take it over", place(in),
			gardencorev1beta1.GardenRole, gardencorev1beta1.GardenRoleProject, gardencorev1beta1.ProjectName, c.name())
	}
}

// namespaceOfProject: by its label a Namespace is that of a Project, which may name another one.
func (c *check) namespaceOfProject() {
	name, _ := at(c.object(), "metadata", "labels", gardencorev1beta1.ProjectName).(string)
	if name == "" || at(c.object(), "metadata", "labels", gardencorev1beta1.GardenRole) != gardencorev1beta1.GardenRoleProject {
		return
	}
	project := c.find(identity{kind: kindProject, name: name})
	if project == nil {
		id := identity{kind: kindProject, name: name}
		// another one may be in a file that cannot be read, or elsewhere
		if hint := c.suggest(id); hint != "" && !c.isExternal(id) {
			c.report("metadata.labels["+gardencorev1beta1.ProjectName+"]", schemas.TypeInvalid, "there is no Project %q%s", name, hint)
		}
		return
	}
	if namespace := text(project.Content().Object, "spec", "namespace"); namespace != "" && namespace != c.name() {
		c.report("metadata.name", schemas.TypeInvalid, "the label %s says that it is the namespace of the Project %q (%s), but that has the namespace %q", gardencorev1beta1.ProjectName, name, place(project), namespace)
	}
}

// memberNamespaces: a service account that is a member is in a namespace that is not nearly that of
// a Project.
func (c *check) memberNamespaces() {
	var known []string
	for _, in := range c.all(kindProject) {
		if namespace := text(in.Content().Object, "spec", "namespace"); namespace != "" {
			known = append(known, namespace)
		}
	}
	for _, in := range c.all(kindNamespace) {
		known = append(known, identityOf(in).name)
	}
	each(c.object(), "spec.members[].namespace", func(path string, value any) {
		namespace, _ := value.(string)
		if meant := suggest.Within(namespace, known, 2); meant != "" && !slices.Contains(known, namespace) {
			c.report(path, schemas.TypeInvalid, "no Project has the namespace %q; did you mean %q?", namespace, meant)
		}
	})
}

// seedName: a Seed is registered by one gardenlet.
func (c *check) seedName() {
	name := c.name()
	c.once("gardenlet of a seed", name, "metadata.name", "the Seed %q has its gardenlet by %s already", name)
}

// offer is a kind and type of extension objects.
type offer struct{ kind, typ string }

// primary: one registration is responsible for a kind and type. Source:
// plugin/pkg/controllerregistration/resources.
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
