// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// uniqueValue is a value that only one object of a landscape may have.
type uniqueValue struct{ purpose, value string }

// claimUniqueValue claims a value for the current object, or reports the earlier claim. The place
// of the first object is appended to args.
func (c *checker) claimUniqueValue(what, value, field, format string, args ...any) {
	if value == "" {
		return
	}
	key := uniqueValue{what, value}
	if first := c.valueOwners[key]; first != nil && first != c.input {
		c.report(field, schemas.TypeDuplicate, format, append(args, objectPosition(first))...)
		return
	}
	c.valueOwners[key] = c.input
	if c.currentNotes != nil {
		c.currentNotes.claimedValues = append(c.currentNotes.claimedValues, key)
	}
}

// checkShootDomain checks that no other Shoot has a domain above or below. Source:
// plugin/pkg/shoot/validator.
func (c *checker) checkShootDomain() {
	domain := strings.ToLower(strings.Trim(textAt(c.object(), "spec", "dns", "domain"), "."))
	if domain == "" {
		return
	}
	const field = "spec.dns.domain"
	if below := c.valueOwners[uniqueValue{purposeShootDomainParent, domain}]; below != nil && below != c.input {
		c.report(field, schemas.TypeForbidden, "the domain %q is above the domain of %s", domain, objectPosition(below))
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
		if other := c.valueOwners[uniqueValue{purposeShootDomain, parent}]; other != nil && other != c.input {
			c.report(field, schemas.TypeForbidden, "the domain %q is below %q, the domain of %s", domain, parent, objectPosition(other))
			return
		}
	}
	c.claim(uniqueValue{purposeShootDomain, domain})
	for parent := range above {
		c.claim(uniqueValue{purposeShootDomainParent, parent})
	}
}

// Uses for the domain of a Shoot and for its parent domains.
const (
	purposeShootDomain       = "domain of a Shoot"
	purposeShootDomainParent = "above the domain of a Shoot"
)

// conflictingPurposes map a use to the use by another object that excludes it.
var conflictingPurposes = map[string]string{purposeShootDomain: purposeShootDomainParent, purposeShootDomainParent: purposeShootDomain, purposeWildcardName: purposeRecordOrParent, purposeRecordOrParent: purposeWildcardName}

// canBeShared reports whether several objects may claim a value.
func (u uniqueValue) canBeShared() bool {
	return u.purpose == purposeShootDomainParent || u.purpose == purposeShootDomain || u.purpose == purposeRecordOrParent
}

// claim registers the current object for a value that has no owner yet.
func (c *checker) claim(u uniqueValue) {
	if c.valueOwners[u] == nil {
		c.valueOwners[u] = c.input
	}
	if c.currentNotes != nil {
		c.currentNotes.claimedValues = append(c.currentNotes.claimedValues, u)
	}
}

func (c *checker) checkProjectNamespace() {
	namespace := textAt(c.object(), "spec", "namespace")
	c.claimUniqueValue("namespace of a project", namespace, "spec.namespace", "the namespace %q already belongs to %s", namespace)
}

// checkNamespaceLabels checks that an existing Namespace has the labels of its Project, which
// otherwise fails.
func (c *checker) checkNamespaceLabels() {
	in := c.findObject(identity{kind: kindNamespace, name: textAt(c.object(), "spec", "namespace")})
	if in == nil {
		return
	}
	if in.Content().GetAnnotations()[clusterAnnotation] == "runtime" {
		c.report("spec.namespace", schemas.TypeInvalid, "%s goes to the runtime cluster by its annotation %s, but the Project is in the virtual garden; remove the annotation", objectPosition(in), clusterAnnotation)
	}
	// also for labels that are not strings
	label := func(key string) any { return valueAt(in.Content().Object, "metadata", "labels", key) }
	if label(gardencorev1beta1.GardenRole) != gardencorev1beta1.GardenRoleProject || label(gardencorev1beta1.ProjectName) != c.name() {
		c.report("spec.namespace", schemas.TypeInvalid, "%s does not have the labels %s: %s and %s: %s, so the Project cannot adopt it", objectPosition(in),
			gardencorev1beta1.GardenRole, gardencorev1beta1.GardenRoleProject, gardencorev1beta1.ProjectName, c.name())
	}
}

// checkProjectOfNamespace checks that a Namespace with a Project label is that Project's namespace.
func (c *checker) checkProjectOfNamespace() {
	name, _ := valueAt(c.object(), "metadata", "labels", gardencorev1beta1.ProjectName).(string)
	if name == "" || valueAt(c.object(), "metadata", "labels", gardencorev1beta1.GardenRole) != gardencorev1beta1.GardenRoleProject {
		return
	}
	project := c.findObject(identity{kind: kindProject, name: name})
	if project == nil {
		id := identity{kind: kindProject, name: name}
		// the Project may be external or in an unreadable file
		if hint := c.suggestName(id); hint != "" && !c.isExternal(id) {
			c.report("metadata.labels["+gardencorev1beta1.ProjectName+"]", schemas.TypeInvalid, "there is no Project %q%s", name, hint)
		}
		return
	}
	if namespace := textAt(project.Content().Object, "spec", "namespace"); namespace != "" && namespace != c.name() {
		c.report("metadata.name", schemas.TypeInvalid, "the label %s names the Project %q (%s), but that Project has the namespace %q", gardencorev1beta1.ProjectName, name, objectPosition(project), namespace)
	}
}

// checkMemberNamespaces reports typos in the namespaces of service account members.
func (c *checker) checkMemberNamespaces() {
	var known []string
	for _, in := range c.allOfKind(kindProject) {
		if namespace := textAt(in.Content().Object, "spec", "namespace"); namespace != "" {
			known = append(known, namespace)
		}
	}
	for _, in := range c.allOfKind(kindNamespace) {
		known = append(known, identityOf(in).name)
	}
	visitValues(c.object(), "spec.members[].namespace", func(path string, value any) {
		namespace, _ := value.(string)
		if meant := suggest.ClosestWithin(namespace, known, 2); meant != "" && !slices.Contains(known, namespace) {
			c.report(path, schemas.TypeInvalid, "no Project has the namespace %q; did you mean %q?", namespace, meant)
		}
	})
}

// checkOneGardenlet checks that a Seed has one gardenlet.
func (c *checker) checkOneGardenlet() {
	name := c.name()
	c.claimUniqueValue("gardenlet of a seed", name, "metadata.name", "the Seed %q already has its gardenlet from %s", name)
}

// extensionOffer is a kind and type of extension objects.
type extensionOffer struct{ kind, extensionType string }

// checkPrimary checks that a kind and type has one primary registration. Source:
// plugin/pkg/controllerregistration/resources.
func (c *checker) checkPrimary() {
	for i, item := range listAt(c.object(), "spec", "resources") {
		r, ok := item.(map[string]any)
		if !ok || valueAt(r, "primary") == false {
			continue
		}
		kind, typ := textAt(r, "kind"), textAt(r, "type")
		if kind == "" || typ == "" {
			continue
		}
		c.claimUniqueValue("primary registration", kind+"/"+typ, fmt.Sprintf("spec.resources[%d]", i), "%s of type %q already have a registration, %s; set primary: false in one of them", kind, typ)
	}
}
