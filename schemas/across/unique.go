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

// once claims a value for the current object, or reports the earlier claim. The place of the first
// object is appended to args.
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

// shootDomain checks that no other Shoot has a domain above or below. Source:
// plugin/pkg/shoot/validator.
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

// Uses for the domain of a Shoot and for its parent domains.
const (
	shootDomain      = "domain of a Shoot"
	aboveShootDomain = "above the domain of a Shoot"
)

// contradictions map a use to the use by another object that excludes it.
var contradictions = map[string]string{shootDomain: aboveShootDomain, aboveShootDomain: shootDomain, hostOf: belowRecord, belowRecord: hostOf}

// isShared reports whether several objects may claim a value.
func (u use) isShared() bool {
	return u.what == aboveShootDomain || u.what == shootDomain || u.what == belowRecord
}

// claim registers the current object for a value that has no owner yet.
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

// namespaceLabelled checks that an existing Namespace has the labels of its Project, which
// otherwise fails.
func (c *check) namespaceLabelled() {
	in := c.find(identity{kind: kindNamespace, name: text(c.object(), "spec", "namespace")})
	if in == nil {
		return
	}
	if in.Content().GetAnnotations()[annotationCluster] == "runtime" {
		c.report("spec.namespace", schemas.TypeInvalid, "%s is put into the runtime cluster by its annotation %s, but the Project is in the virtual one; remove the annotation", place(in), annotationCluster)
	}
	// also for labels that are not strings
	label := func(key string) any { return at(in.Content().Object, "metadata", "labels", key) }
	if label(gardencorev1beta1.GardenRole) != gardencorev1beta1.GardenRoleProject || label(gardencorev1beta1.ProjectName) != c.name() {
		c.report("spec.namespace", schemas.TypeInvalid, "%s does not have the labels %s: %s and %s: %s, so that the Project cannot take it over", place(in),
			gardencorev1beta1.GardenRole, gardencorev1beta1.GardenRoleProject, gardencorev1beta1.ProjectName, c.name())
	}
}

// namespaceOfProject checks that a Namespace with a Project label is that Project's namespace.
func (c *check) namespaceOfProject() {
	name, _ := at(c.object(), "metadata", "labels", gardencorev1beta1.ProjectName).(string)
	if name == "" || at(c.object(), "metadata", "labels", gardencorev1beta1.GardenRole) != gardencorev1beta1.GardenRoleProject {
		return
	}
	project := c.find(identity{kind: kindProject, name: name})
	if project == nil {
		id := identity{kind: kindProject, name: name}
		// the Project may be external or in an unreadable file
		if hint := c.suggest(id); hint != "" && !c.isExternal(id) {
			c.report("metadata.labels["+gardencorev1beta1.ProjectName+"]", schemas.TypeInvalid, "there is no Project %q%s", name, hint)
		}
		return
	}
	if namespace := text(project.Content().Object, "spec", "namespace"); namespace != "" && namespace != c.name() {
		c.report("metadata.name", schemas.TypeInvalid, "the label %s says that it is the namespace of the Project %q (%s), but that has the namespace %q", gardencorev1beta1.ProjectName, name, place(project), namespace)
	}
}

// memberNamespaces reports typos in the namespaces of service account members.
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
		if meant := suggest.ClosestWithin(namespace, known, 2); meant != "" && !slices.Contains(known, namespace) {
			c.report(path, schemas.TypeInvalid, "no Project has the namespace %q; did you mean %q?", namespace, meant)
		}
	})
}

// seedName checks that a Seed has one gardenlet.
func (c *check) seedName() {
	name := c.name()
	c.once("gardenlet of a seed", name, "metadata.name", "the Seed %q has its gardenlet by %s already", name)
}

// offer is a kind and type of extension objects.
type offer struct{ kind, typ string }

// primary checks that a kind and type has one primary registration. Source:
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
