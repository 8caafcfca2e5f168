// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/pergola-dev/pergola/schemas"
)

// scalableKinds are the kinds that `replicas` of a kustomization sets.
var scalableKinds = []string{"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"}

var (
	missingIDPattern    = regexp.MustCompile(`id resid\.ResId\{.*Kind:"([^"]*)".*Name:"([^"]*)", Namespace:"([^"]*)"\} does not exist; cannot merge or replace`)
	existingIDPattern   = regexp.MustCompile(`id resid\.ResId\{.*Kind:"([^"]*)".*Name:"([^"]*)", Namespace:"([^"]*)"\} exists; can not use behavior`)
	registeredIDPattern = regexp.MustCompile(`already registered id: ([^.]+)\.\S*/(\S+)\.([^\s':]+)`)
	// krustyInternalsPattern match krusty's internal data: pointers, and empty parts of an id.
	krustyInternalsPattern = regexp.MustCompile(`&\{0x[^}]*\}|\.\[no(?:Ver|Grp|Ns)\]`)
)

// explainError explains krusty errors about objects that a part of a kustomization names; the
// result is nil for other errors.
func (k kustomization) explainError(memory filesys.FileSystem, p kustomizationPart, said string) *finding {
	for i, r := range k.Replicas {
		if p.field == fmt.Sprintf("replicas[%d]", i) && strings.Contains(said, "does not match a config") {
			names := k.namesOf(memory, p, scalableKinds...)
			f := k.finding(p.field, schemas.TypeInvalid, "there is no %s %q%s", strings.Join(scalableKinds, " or "), r.Name, suggestName(r.Name, names))
			return &f
		}
	}
	if is := missingIDPattern.FindStringSubmatch(said); is != nil {
		hint := suggestName(is[2], k.namesOf(memory, p, is[1]))
		if namespaces := k.namespacesOf(memory, p, is[1], is[2]); len(namespaces) > 0 {
			hint = fmt.Sprintf("; it is in namespace %s: set namespace", strings.Join(namespaces, ", "))
		}
		f := k.finding(k.generatorOf(p.field, is[2]), schemas.TypeInvalid, "there is no %s to merge with or to replace%s", qualifiedName(is[1], is[3], is[2]), hint)
		return &f
	}
	if is := existingIDPattern.FindStringSubmatch(said); is != nil {
		f := k.finding(k.generatorOf(p.field, is[2]), schemas.TypeDuplicate, "there is a %s already: set behavior to merge or replace, or choose another name", qualifiedName(is[1], is[3], is[2]))
		return &f
	}
	if is := registeredIDPattern.FindStringSubmatch(said); is != nil {
		f := k.partFinding(p, fmt.Sprintf("%s exists twice: patch the existing object, or remove one of them", qualifiedName(is[1], strings.ReplaceAll(is[3], "[noNs]", ""), is[2])))
		return &f
	}
	return nil
}

func qualifiedName(kind, namespace, name string) string {
	return kind + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

// suggestName suggests the most likely name, or all names if there are few.
func suggestName(name string, known []string) string {
	const few = 5
	if hint := didYouMean(name, known); hint != "" || len(known) == 0 || len(known) > few {
		return hint
	}
	return "; there is " + strings.Join(known, ", ")
}

// generatorOf is the entry of a list of generators that makes an object.
func (k kustomization) generatorOf(field, name string) string {
	generators := map[string]int{"configMapGenerator": len(k.ConfigMapGenerator), "secretGenerator": len(k.SecretGenerator)}
	for i := range generators[field] {
		if entry := fmt.Sprintf("%s[%d].name", field, i); k.node(entry) != nil && k.node(entry).Value == name {
			return entry
		}
	}
	return field
}

// withoutPart is the kustomization without a part and without changes to objects.
func (k kustomization) withoutPart(p kustomizationPart) types.Kustomization {
	built := k.Kustomization
	built.Patches, built.Replacements, built.Images, built.Replicas = nil, nil, nil, nil
	for _, w := range globalParts {
		if w.field == p.field {
			w.copyPart(&built, &types.Kustomization{})
		}
	}
	return built
}

// namesOf are the names of objects of some kinds in a kustomization without a part.
func (k kustomization) namesOf(memory filesys.FileSystem, p kustomizationPart, kinds ...string) []string {
	return k.mapObjectsWithout(memory, p, func(kind, name, namespace string) string {
		if slices.Contains(kinds, kind) {
			return name
		}
		return ""
	})
}

// namespacesOf are the namespaces of the objects of a kind and name.
func (k kustomization) namespacesOf(memory filesys.FileSystem, p kustomizationPart, kind, name string) []string {
	return k.mapObjectsWithout(memory, p, func(its, called, namespace string) string {
		if its == kind && called == name {
			return namespace
		}
		return ""
	})
}

// mapObjectsWithout applies a function to the objects of a kustomization without a part and returns
// its sorted results.
func (k kustomization) mapObjectsWithout(memory filesys.FileSystem, p kustomizationPart, text func(kind, name, namespace string) string) []string {
	resources, err := krustyBuild(memory, k.path, k.withoutPart(p))
	if err != nil {
		return nil
	}
	var out []string
	for _, r := range resources.Resources() {
		if found := text(r.GetKind(), r.GetName(), r.GetNamespace()); found != "" {
			out = append(out, found)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
