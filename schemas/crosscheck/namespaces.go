// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/internal/suggest"
	"github.com/pergola-dev/pergola/schemas"
)

// maxEditDistance is the maximum edit distance of a typo. Other namespaces may exist through the
// API.
const maxEditDistance = 2

// builtinNamespaces exist in every cluster, or in every garden.
var builtinNamespaces = []string{gardencorev1beta1.GardenNamespace, "default", "kube-system", "kube-public", "kube-node-lease"}

// digitsPattern number the namespaces of a series: team-1 and team-2 are both intended.
var digitsPattern = regexp.MustCompile("[0-9]+")

// namespaceRules apply to all objects of Projects except Shoots, which require a Project anyway.
func namespaceRules(def ruleConstructor) []rule {
	var out []rule
	for _, kind := range []string{"Bastion", "ConfigMap", "CredentialsBinding", "InternalSecret", "NamespacedCloudProfile", "Quota", "Secret", "SecretBinding", "ShootState", "WorkloadIdentity"} {
		r := def(kind, "landscape/namespace-misspelt", "The namespace of an object is not misspelt", "No Project and no Namespace of the landscape has this namespace, but one has nearly the same name. Correct it, or list the Namespace under spec.external in landscape.yaml.",
			"ours: nothing makes the namespace, so that the object cannot be applied", (*checker).checkNamespaceSpelling).withFields("metadata.namespace")
		r.Severity = schemas.SeverityWarning
		out = append(out, r)
	}
	return out
}

func (c *checker) checkNamespaceSpelling() {
	namespace := c.namespace()
	id := identity{kind: kindNamespace, name: namespace}
	if namespace == "" || c.findProject(namespace) != nil || c.hasObject(id) || c.isExternal(id) {
		return
	}
	known := slices.Clone(builtinNamespaces)
	for _, kind := range []schema.GroupKind{kindProject, kindNamespace} {
		for _, in := range c.allOfKind(kind) {
			name := identityOf(in).name
			if kind == kindProject {
				name = textAt(in.Content().Object, "spec", "namespace")
			}
			known = append(known, name)
		}
	}
	if slices.Contains(known, namespace) {
		return
	}
	guess := suggest.ClosestWithin(namespace, known, maxEditDistance)
	if guess == "" || digitsPattern.ReplaceAllString(guess, "") == digitsPattern.ReplaceAllString(namespace, "") {
		return
	}
	c.report("metadata.namespace", schemas.TypeInvalid, "no Project and no Namespace of this landscape has the namespace %q; did you mean %q?", namespace, guess)
}
