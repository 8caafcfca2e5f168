// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"crypto/sha256"
	"maps"
	"regexp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/resultcache"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// LandscapeObjects is the landscape of the objects under test. It enables the rules of the
// landscape, and makes optional what the API fills in from it (versions and images of a cloud
// profile).
type LandscapeObjects struct {
	Objects []*unstructured.Unstructured
	// LazyObjects are more objects, whose content is read when a rule needs it.
	LazyObjects []*LazyObject
}

// landscapeIndex is the form for rules: objects by kind, then by name or namespace/name.
type landscapeIndex struct {
	kinds map[string]*landscapeKind
	// digests holds the digests of the parts that units read, by part.
	digests sync.Map
}

// landscapeKind holds the objects of one kind.
type landscapeKind struct {
	inputs  []Input
	objects func() map[string]any
	digest  func() resultcache.Key
}

// landscapeKinds lists the kinds that rules may read: few objects, and no secret values.
var landscapeKinds = [...]string{
	"CloudProfile", "NamespacedCloudProfile", "ExposureClass", "Extension", "Garden", "Landscape", "Project", "Quota", "Seed",
}

func newLandscapeIndex(s *LandscapeObjects) *landscapeIndex {
	if s == nil {
		return nil
	}
	result := &landscapeIndex{kinds: make(map[string]*landscapeKind, len(landscapeKinds))}
	for _, kind := range landscapeKinds {
		k := &landscapeKind{}
		k.objects, k.digest = sync.OnceValue(k.readObjects), sync.OnceValue(k.readDigest)
		result.kinds[kind] = k
	}
	for _, object := range s.Objects {
		if k := result.kinds[structure.RulesName(object.GroupVersionKind())]; k != nil {
			k.inputs = append(k.inputs, Input{Object: object})
		}
	}
	for _, later := range s.LazyObjects {
		if k := result.kinds[structure.RulesName(later.Kind)]; k != nil {
			k.inputs = append(k.inputs, Input{Lazy: later})
		}
	}
	return result
}

func (k *landscapeKind) readObjects() map[string]any {
	objects := make(map[string]any, len(k.inputs))
	for i := range k.inputs {
		objects[k.inputs[i].objectKey()] = k.inputs[i].Content().Object
	}
	return objects
}

func (k *landscapeKind) readDigest() resultcache.Key {
	digests := make(map[string]resultcache.Key, len(k.inputs))
	for i := range k.inputs {
		digests[k.inputs[i].objectKey()] = k.inputs[i].Digest()
	}
	var to []byte
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		digest := digests[name]
		to = append(appendText(to, name), digest[:]...)
	}
	return sha256.Sum256(to)
}

// objectKey returns the name of an object for rules.
func (in *Input) objectKey() string {
	_, namespace, name := in.Identity()
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// objects returns the objects of a kind, by key.
func (s *landscapeIndex) objects(kind string) map[string]any { return s.kinds[kind].objects() }

// selectFields returns what a unit reads of the landscape: all kinds, but only the objects of kinds
// that it reads.
func (s *landscapeIndex) selectFields(read *fieldSelection) map[string]any {
	all := make(map[string]any, len(s.kinds))
	for kind, k := range s.kinds {
		all[kind] = map[string]any{}
		if read.hasKind(kind) {
			all[kind] = k.objects()
		}
	}
	return read.selectFrom(all)
}

// hasKind reports whether anything of a kind is read.
func (p *fieldSelection) hasKind(kind string) bool {
	return p.isWhole || p.shape || p.items != nil || p.fields[kind] != nil
}

// selectionDigest returns the digest of a part, where nil means all; the zero key outside a
// landscape.
func (s *landscapeIndex) selectionDigest(read *fieldSelection) resultcache.Key {
	if s == nil {
		return resultcache.Key{}
	}
	name := ""
	if read != nil {
		name = read.String()
	}
	if known, ok := s.digests.Load(name); ok {
		return known.(resultcache.Key)
	}
	var to []byte
	for _, kind := range landscapeKinds {
		if read == nil || read.hasKind(kind) {
			digest := s.kinds[kind].digest()
			to = append(appendText(to, kind), digest[:]...)
		}
	}
	sum := resultcache.Key(sha256.Sum256(to))
	s.digests.Store(name, sum)
	return sum
}

// profileDefaultedFieldPattern matches the fields of a Shoot that the API fills in from the cloud
// profile.
var profileDefaultedFieldPattern = regexp.MustCompile(`^spec\.(kubernetes\.version|provider\.workers\[\d+\]\.machine\.image(\.(name|version))?)$`)

// IsDefaultedByProfile reports whether a finding is about a missing field of a Shoot that its cloud
// profile fills in.
func IsDefaultedByProfile(v Violation) bool {
	return v.Type == TypeRequired && profileDefaultedFieldPattern.MatchString(v.Field)
}

// dropDefaulted drops findings about missing fields that the API fills in, if the cloud profile
// of the Shoot is known.
func (s *landscapeIndex) dropDefaulted(in Input, findings []finding) []finding {
	fills := func(f finding) bool { return f.typ == TypeRequired && profileDefaultedFieldPattern.MatchString(f.path) }
	gvk, _, _ := in.Identity()
	if s == nil || structure.RulesName(gvk) != "Shoot" || !slices.ContainsFunc(findings, fills) || !s.hasProfile(in.Content().Object) {
		return findings
	}
	return slices.DeleteFunc(slices.Clone(findings), fills)
}

func (s *landscapeIndex) hasProfile(shoot map[string]any) bool {
	kind, _, _ := unstructured.NestedString(shoot, "spec", "cloudProfile", "kind")
	name, _, _ := unstructured.NestedString(shoot, "spec", "cloudProfile", "name")
	if name == "" {
		name, _, _ = unstructured.NestedString(shoot, "spec", "cloudProfileName")
	}
	if kind == "NamespacedCloudProfile" {
		namespace, _, _ := unstructured.NestedString(shoot, "metadata", "namespace")
		return s.kinds[kind].has(namespace + "/" + name)
	}
	return s.kinds["CloudProfile"].has(name)
}

func (k *landscapeKind) has(key string) bool {
	return slices.ContainsFunc(k.inputs, func(in Input) bool { return in.objectKey() == key })
}
