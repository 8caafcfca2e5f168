package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/schemas/structure"
)

// Surroundings is the landscape around the objects under test. With it, rules of the landscape count too, and what
// the API fills in from the surroundings (versions and images of a cloud profile) is not asked for.
type Surroundings struct {
	Objects []*unstructured.Unstructured
}

// surroundings is the form that rules see: by kind, then by name or namespace/name.
type surroundings struct {
	byKind map[string]map[string]any
	digest string
	// digests are those of what units see, by their id.
	digests sync.Map
}

// partsFor is what the rules of a unit see of the landscape.
func (s *surroundings) partsFor(u *unit) map[string]any {
	all := make(map[string]any, len(s.byKind))
	for kind, objects := range s.byKind {
		all[kind] = objects
	}
	return u.reads.landscape.of(all)
}

// digestOf is that of partsFor; "" outside of a landscape.
func (s *surroundings) digestOf(u *unit) string {
	if s == nil {
		return ""
	}
	if known, ok := s.digests.Load(u.id); ok {
		return known.(string)
	}
	sum := sha256.Sum256(appendCanonical(nil, s.partsFor(u)))
	s.digests.Store(u.id, string(sum[:]))
	return string(sum[:])
}

// kindsInSurroundings are the kinds that rules may look at: few objects, and no secret values.
var kindsInSurroundings = [...]string{
	"CloudProfile", "NamespacedCloudProfile", "ExposureClass", "Extension", "Garden", "Project", "Quota", "Seed",
}

func newSurroundings(s *Surroundings) *surroundings {
	if s == nil {
		return nil
	}
	result := &surroundings{byKind: map[string]map[string]any{}}
	for _, kind := range kindsInSurroundings {
		result.byKind[kind] = map[string]any{}
	}
	for _, object := range s.Objects {
		if names, ok := result.byKind[structure.RulesName(object.GroupVersionKind())]; ok {
			names[key(object)] = object.Object
		}
	}
	all := make(map[string]any, len(result.byKind))
	for kind, objects := range result.byKind {
		all[kind] = objects
	}
	sum := sha256.Sum256(appendCanonical(nil, all))
	result.digest = hex.EncodeToString(sum[:])
	return result
}

func key(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}

// filledFromProfile are the fields of a Shoot that the API fills in from the cloud profile.
var filledFromProfile = regexp.MustCompile(`^spec\.(kubernetes\.version|provider\.workers\[\d+\]\.machine\.image(\.(name|version))?)$`)

// withoutDefaulted drops the findings about missing fields that the API's own mutations fill in, which it does where
// the cloud profile of the Shoot is known.
func (s *surroundings) withoutDefaulted(kind *structure.Kind, object map[string]any, findings []finding) []finding {
	if s == nil || kind.GVK.Kind != "Shoot" || !s.hasProfile(object) {
		return findings
	}
	return slices.DeleteFunc(findings, func(f finding) bool {
		return f.typ == TypeRequired && filledFromProfile.MatchString(f.path)
	})
}

func (s *surroundings) hasProfile(shoot map[string]any) bool {
	kind, _, _ := unstructured.NestedString(shoot, "spec", "cloudProfile", "kind")
	name, _, _ := unstructured.NestedString(shoot, "spec", "cloudProfile", "name")
	if name == "" {
		name, _, _ = unstructured.NestedString(shoot, "spec", "cloudProfileName")
	}
	if kind == "NamespacedCloudProfile" {
		namespace, _, _ := unstructured.NestedString(shoot, "metadata", "namespace")
		return s.byKind[kind][namespace+"/"+name] != nil
	}
	return s.byKind["CloudProfile"][name] != nil
}
