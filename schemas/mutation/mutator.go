// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// ObjectLister finds other objects. Callers must not change them.
type ObjectLister interface {
	// Get returns an object; it is nil if it does not exist. Cluster-scoped objects have an empty
	// namespace.
	Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured
	// List returns the objects of a kind in a stable order.
	List(kind schema.GroupKind) []*unstructured.Unstructured
}

// ReadKinds returns the kinds that mutations read. They read only the annotations of Secrets, and
// only of default domains (label gardener.cloud/role: default-domain, in namespace garden).
func ReadKinds() []schema.GroupKind {
	return []schema.GroupKind{
		kindBackupBucket, kindCloudProfile, kindControllerRegistration, kindCredentialsBinding, kindExposureClass, kindManagedSeed,
		kindNamespacedCloudProfile, kindOperatorExtension, kindProject, kindSecret, kindSecretBinding, kindSeed, kindShoot,
	}
}

type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

// objectList implements Around with a list.
type objectList struct {
	byIdentity map[identity]*unstructured.Unstructured
	byKind     map[schema.GroupKind][]*unstructured.Unstructured
}

// NewObjectLister returns an Around for the objects of a landscape or cluster. The first of two
// objects with the same name counts.
func NewObjectLister(list []*unstructured.Unstructured) ObjectLister {
	o := objectList{byIdentity: make(map[identity]*unstructured.Unstructured, len(list)), byKind: map[schema.GroupKind][]*unstructured.Unstructured{}}
	for _, object := range list {
		kind := object.GroupVersionKind().GroupKind()
		id := identity{kind, object.GetNamespace(), object.GetName()}
		if o.byIdentity[id] == nil {
			o.byIdentity[id] = object
			o.byKind[kind] = append(o.byKind[kind], object)
		}
	}
	return o
}

func (o objectList) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	return o.byIdentity[identity{kind, namespace, name}]
}

func (o objectList) List(kind schema.GroupKind) []*unstructured.Unstructured { return o.byKind[kind] }

// Mutator caches the objects that mutations read. Share one for all objects of a landscape. It
// is not safe for concurrent use.
type Mutator struct {
	lister ObjectLister
	now    time.Time
	// profiles and the maps below have the requested objects with API defaults, or nil for missing
	// or unreadable ones.
	profiles             map[identity]*shootProfileSpec
	seeds                map[string]*gardencorev1beta1.Seed
	exposureClasses      map[string]*gardencorev1beta1.ExposureClass
	projects             map[string]*gardencorev1beta1.Project
	landscapeDomains     []defaultDomain
	autoEnabledByCluster map[gardencorev1beta1.ClusterType][]autoEnabledExtension
	// hasProjects, hasDomains and hasAutoEnabled report which lists are read.
	hasProjects, hasDomains, hasAutoEnabled bool
}

// New returns the Surroundings at a time. With the zero time, mutations choose no version, because
// expirations are unknown.
func New(around ObjectLister, now time.Time) *Mutator {
	return &Mutator{
		lister: around, now: now, profiles: map[identity]*shootProfileSpec{}, seeds: map[string]*gardencorev1beta1.Seed{},
		exposureClasses: map[string]*gardencorev1beta1.ExposureClass{},
	}
}

func coreKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: gardencorev1beta1.SchemeGroupVersion.Group, Kind: kind}
}

// toTyped returns the typed object, or nil if it is missing or broken, which validation reports.
func toTyped[T any](object *unstructured.Unstructured) *T {
	if object == nil {
		return nil
	}
	out := new(T)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out) != nil {
		return nil
	}
	return out
}

func (s *Mutator) findSeed(name string) *gardencorev1beta1.Seed {
	seed, asked := s.seeds[name]
	if !asked {
		if seed = toTyped[gardencorev1beta1.Seed](s.lister.Get(kindSeed, "", name)); seed != nil {
			gardencorev1beta1.SetDefaults_Seed(seed)
		}
		s.seeds[name] = seed
	}
	return seed
}

func (s *Mutator) findExposureClass(name string) *gardencorev1beta1.ExposureClass {
	class, asked := s.exposureClasses[name]
	if !asked {
		class = toTyped[gardencorev1beta1.ExposureClass](s.lister.Get(kindExposureClass, "", name))
		s.exposureClasses[name] = class
	}
	return class
}

// findProject returns the Project of a namespace.
func (s *Mutator) findProject(namespace string) *gardencorev1beta1.Project {
	if !s.hasProjects {
		s.hasProjects, s.projects = true, map[string]*gardencorev1beta1.Project{}
		for _, object := range s.lister.List(kindProject) {
			project := toTyped[gardencorev1beta1.Project](object)
			if project == nil || project.Spec.Namespace == nil || s.projects[*project.Spec.Namespace] != nil {
				continue
			}
			gardencorev1beta1.SetDefaults_Project(project)
			s.projects[*project.Spec.Namespace] = project
		}
	}
	return s.projects[namespace]
}

// findMutatedShoot returns a Shoot with the values that mutations fill in.
func (s *Mutator) findMutatedShoot(namespace, name string) *gardencorev1beta1.Shoot {
	shoot := toTyped[gardencorev1beta1.Shoot](s.lister.Get(kindShoot, namespace, name))
	if shoot != nil {
		s.MutateShoot(shoot, nil)
	}
	return shoot
}

// defaultDomain is a parent domain for Shoots of the landscape.
type defaultDomain struct {
	domain, provider string
	credentials      corev1.ObjectReference
	source           string
}

const (
	annotationDomain   = "dns.gardener.cloud/domain"
	annotationProvider = "dns.gardener.cloud/provider"
	annotationPriority = "dns.gardener.cloud/domain-default-priority"
)

// defaultDomains returns the Seed's own default domains, or else the landscape's by priority.
func (s *Mutator) defaultDomains(seed *gardencorev1beta1.Seed) []defaultDomain {
	if seed != nil && len(seed.Spec.DNS.Defaults) > 0 {
		var own []defaultDomain
		for _, d := range seed.Spec.DNS.Defaults {
			own = append(own, defaultDomain{d.Domain, d.Type, d.CredentialsRef, "Seed " + seed.Name})
		}
		return own
	}
	if s.hasDomains {
		return s.landscapeDomains
	}
	s.hasDomains = true
	var secrets []*unstructured.Unstructured
	for _, secret := range s.lister.List(kindSecret) {
		isDomain := secret.GetLabels()[gardencorev1beta1.GardenRole] == gardencorev1beta1.GardenRoleDefaultDomain
		if isDomain && secret.GetNamespace() == gardencorev1beta1.GardenNamespace && secret.GetAnnotations()[annotationDomain] != "" {
			secrets = append(secrets, secret)
		}
	}
	slices.SortStableFunc(secrets, func(a, b *unstructured.Unstructured) int { return cmp.Compare(domainPriority(b), domainPriority(a)) })
	for _, secret := range secrets {
		s.landscapeDomains = append(s.landscapeDomains, defaultDomain{
			domain: secret.GetAnnotations()[annotationDomain], provider: secret.GetAnnotations()[annotationProvider],
			credentials: corev1.ObjectReference{APIVersion: "v1", Kind: kindSecret.Kind, Namespace: secret.GetNamespace(), Name: secret.GetName()},
			source:      "Secret garden/" + secret.GetName(),
		})
	}
	return s.landscapeDomains
}

// domainPriority returns the priority of a default domain, or 0 if it is not a number.
func domainPriority(secret *unstructured.Unstructured) int {
	n, err := strconv.Atoi(secret.GetAnnotations()[annotationPriority])
	if err != nil {
		return 0
	}
	return n
}
