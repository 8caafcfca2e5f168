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

// scalable are the kinds that `replicas` of a kustomization sets.
var scalable = []string{"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"}

var (
	missingID    = regexp.MustCompile(`id resid\.ResId\{.*Kind:"([^"]*)".*Name:"([^"]*)", Namespace:"([^"]*)"\} does not exist; cannot merge or replace`)
	takenID      = regexp.MustCompile(`id resid\.ResId\{.*Kind:"([^"]*)".*Name:"([^"]*)", Namespace:"([^"]*)"\} exists; can not use behavior`)
	registeredID = regexp.MustCompile(`already registered id: ([^.]+)\.\S*/(\S+)\.([^\s':]+)`)
	// internals match krusty's internal data: pointers, and empty parts of an id.
	internals = regexp.MustCompile(`&\{0x[^}]*\}|\.\[no(?:Ver|Grp|Ns)\]`)
)

// plainly explains krusty errors about objects that a part of a kustomization names; nil for other
// errors.
func (k kustomization) plainly(memory filesys.FileSystem, p part, said string) *finding {
	for i, r := range k.Replicas {
		if p.field == fmt.Sprintf("replicas[%d]", i) && strings.Contains(said, "does not match a config") {
			names := k.namesOf(memory, p, scalable...)
			f := k.finding(p.field, schemas.TypeInvalid, "there is no %s %q%s", strings.Join(scalable, " or "), r.Name, hintOf(r.Name, names))
			return &f
		}
	}
	if is := missingID.FindStringSubmatch(said); is != nil {
		hint := hintOf(is[2], k.namesOf(memory, p, is[1]))
		if namespaces := k.namespacesOf(memory, p, is[1], is[2]); len(namespaces) > 0 {
			hint = fmt.Sprintf("; it is in namespace %s: set namespace", strings.Join(namespaces, ", "))
		}
		f := k.finding(k.generatorOf(p.field, is[2]), schemas.TypeInvalid, "there is no %s to merge with or to replace%s", named(is[1], is[3], is[2]), hint)
		return &f
	}
	if is := takenID.FindStringSubmatch(said); is != nil {
		f := k.finding(k.generatorOf(p.field, is[2]), schemas.TypeDuplicate, "there is a %s already: set behavior to merge or replace, or choose another name", named(is[1], is[3], is[2]))
		return &f
	}
	if is := registeredID.FindStringSubmatch(said); is != nil {
		f := k.partFinding(p, fmt.Sprintf("there are two of %s: patch the one that is there, or leave one out", named(is[1], strings.ReplaceAll(is[3], "[noNs]", ""), is[2])))
		return &f
	}
	return nil
}

func named(kind, namespace, name string) string {
	return kind + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

// hintOf suggests the most likely name, or all names if there are few.
func hintOf(name string, known []string) string {
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

// without is the kustomization without a part and without changes to objects.
func (k kustomization) without(p part) types.Kustomization {
	built := k.Kustomization
	built.Patches, built.Replacements, built.Images, built.Replicas = nil, nil, nil, nil
	for _, w := range wholesale {
		if w.field == p.field {
			w.take(&built, &types.Kustomization{})
		}
	}
	return built
}

// namesOf are the names of objects of some kinds in a kustomization without a part.
func (k kustomization) namesOf(memory filesys.FileSystem, p part, kinds ...string) []string {
	return k.objectsBut(memory, p, func(kind, name, namespace string) string {
		if slices.Contains(kinds, kind) {
			return name
		}
		return ""
	})
}

// namespacesOf are the namespaces of the objects of a kind and name.
func (k kustomization) namespacesOf(memory filesys.FileSystem, p part, kind, name string) []string {
	return k.objectsBut(memory, p, func(its, called, namespace string) string {
		if its == kind && called == name {
			return namespace
		}
		return ""
	})
}

// objectsBut applies a function to the objects of a kustomization without a part and returns its
// sorted results.
func (k kustomization) objectsBut(memory filesys.FileSystem, p part, text func(kind, name, namespace string) string) []string {
	resources, err := krustyBuild(memory, k.path, k.without(p))
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
