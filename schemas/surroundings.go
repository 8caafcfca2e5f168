package schemas

import (
	"crypto/sha256"
	"maps"
	"regexp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/kept"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// Surroundings is the landscape around the objects under test. With it, rules of the landscape
// count too, and what the API fills in from the surroundings (versions and images of a cloud
// profile) is not asked for.
type Surroundings struct {
	Objects []*unstructured.Unstructured
	// Later are more objects, whose content is read when a rule looks at it.
	Later []*Later
}

// surroundings is the form that rules see: by kind, then by name or namespace/name.
type surroundings struct {
	kinds map[string]*surroundingKind
	// digests are those of what units see, by their parts.
	digests sync.Map
}

// surroundingKind are the objects of one kind.
type surroundingKind struct {
	inputs  []Input
	objects func() map[string]any
	digest  func() kept.Key
}

// kindsInSurroundings are the kinds that rules may look at: few objects, and no secret values.
var kindsInSurroundings = [...]string{
	"CloudProfile", "NamespacedCloudProfile", "ExposureClass", "Extension", "Garden", "Landscape", "Project", "Quota", "Seed",
}

func newSurroundings(s *Surroundings) *surroundings {
	if s == nil {
		return nil
	}
	result := &surroundings{kinds: make(map[string]*surroundingKind, len(kindsInSurroundings))}
	for _, kind := range kindsInSurroundings {
		k := &surroundingKind{}
		k.objects, k.digest = sync.OnceValue(k.readObjects), sync.OnceValue(k.readDigest)
		result.kinds[kind] = k
	}
	for _, object := range s.Objects {
		if k := result.kinds[structure.RulesName(object.GroupVersionKind())]; k != nil {
			k.inputs = append(k.inputs, Input{Object: object})
		}
	}
	for _, later := range s.Later {
		if k := result.kinds[structure.RulesName(later.Kind)]; k != nil {
			k.inputs = append(k.inputs, Input{Later: later})
		}
	}
	return result
}

func (k *surroundingKind) readObjects() map[string]any {
	objects := make(map[string]any, len(k.inputs))
	for i := range k.inputs {
		objects[k.inputs[i].key()] = k.inputs[i].Content().Object
	}
	return objects
}

func (k *surroundingKind) readDigest() kept.Key {
	digests := make(map[string]kept.Key, len(k.inputs))
	for i := range k.inputs {
		digests[k.inputs[i].key()] = k.inputs[i].Digest()
	}
	var to []byte
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		digest := digests[name]
		to = append(appendText(to, name), digest[:]...)
	}
	return sha256.Sum256(to)
}

// key is the name that rules know an object by.
func (in *Input) key() string {
	_, namespace, name := in.Identity()
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// objects are those of a kind, by key.
func (s *surroundings) objects(kind string) map[string]any { return s.kinds[kind].objects() }

// parts is what the rules of a unit see of the landscape: all kinds, with the objects of those that
// they look at.
func (s *surroundings) parts(read *part) map[string]any {
	all := make(map[string]any, len(s.kinds))
	for kind, k := range s.kinds {
		all[kind] = map[string]any{}
		if read.hasKind(kind) {
			all[kind] = k.objects()
		}
	}
	return read.of(all)
}

// hasKind tells whether something of a kind is read.
func (p *part) hasKind(kind string) bool {
	return p.whole || p.shape || p.items != nil || p.fields[kind] != nil
}

// digestOf is that of parts, where nil stands for all; that of nothing outside of a landscape.
func (s *surroundings) digestOf(read *part) kept.Key {
	if s == nil {
		return kept.Key{}
	}
	name := ""
	if read != nil {
		name = read.String()
	}
	if known, ok := s.digests.Load(name); ok {
		return known.(kept.Key)
	}
	var to []byte
	for _, kind := range kindsInSurroundings {
		if read == nil || read.hasKind(kind) {
			digest := s.kinds[kind].digest()
			to = append(appendText(to, kind), digest[:]...)
		}
	}
	sum := kept.Key(sha256.Sum256(to))
	s.digests.Store(name, sum)
	return sum
}

// filledFromProfile are the fields of a Shoot that the API fills in from the cloud profile.
var filledFromProfile = regexp.MustCompile(`^spec\.(kubernetes\.version|provider\.workers\[\d+\]\.machine\.image(\.(name|version))?)$`)

// LeftToProfile tells whether a finding about a Shoot is that it leaves open what its cloud profile
// fills in.
func LeftToProfile(v Violation) bool {
	return v.Type == TypeRequired && filledFromProfile.MatchString(v.Field)
}

// withoutDefaulted drops the findings about missing fields that the API's own mutations fill in,
// which it does where the cloud profile of the Shoot is known.
func (s *surroundings) withoutDefaulted(in Input, findings []finding) []finding {
	fills := func(f finding) bool { return f.typ == TypeRequired && filledFromProfile.MatchString(f.path) }
	gvk, _, _ := in.Identity()
	if s == nil || structure.RulesName(gvk) != "Shoot" || !slices.ContainsFunc(findings, fills) || !s.hasProfile(in.Content().Object) {
		return findings
	}
	return slices.DeleteFunc(slices.Clone(findings), fills)
}

func (s *surroundings) hasProfile(shoot map[string]any) bool {
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

func (k *surroundingKind) has(key string) bool {
	return slices.ContainsFunc(k.inputs, func(in Input) bool { return in.key() == key })
}
