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

// Around finds other objects. Callers must not change them.
type Around interface {
	// Get returns an object, nil if it does not exist. Cluster-scoped objects have an empty
	// namespace.
	Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured
	// List returns the objects of a kind in a stable order.
	List(kind schema.GroupKind) []*unstructured.Unstructured
}

// Reads returns the kinds that mutations read. They read only the annotations of Secrets, and only
// of default domains (label gardener.cloud/role: default-domain, in namespace garden).
func Reads() []schema.GroupKind {
	return []schema.GroupKind{
		kindBackupBucket, kindCloudProfile, kindControllerRegistration, kindCredentialsBinding, kindExposureClass, kindManagedSeed,
		kindNamespacedCloudProfile, kindOperatorExtension, kindProject, kindSecret, kindSecretBinding, kindSeed, kindShoot,
	}
}

type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

// objects implements Around with a list.
type objects struct {
	byIdentity map[identity]*unstructured.Unstructured
	byKind     map[schema.GroupKind][]*unstructured.Unstructured
}

// Objects returns an Around for the objects of a landscape or cluster. The first of two objects
// with the same name counts.
func Objects(list []*unstructured.Unstructured) Around {
	o := objects{byIdentity: make(map[identity]*unstructured.Unstructured, len(list)), byKind: map[schema.GroupKind][]*unstructured.Unstructured{}}
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

func (o objects) Get(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	return o.byIdentity[identity{kind, namespace, name}]
}

func (o objects) List(kind schema.GroupKind) []*unstructured.Unstructured { return o.byKind[kind] }

// Surroundings caches the objects that mutations read. Share one for all objects of a landscape. It
// is not safe for concurrent use.
type Surroundings struct {
	around Around
	now    time.Time
	// Requested objects with API defaults; nil for missing or unreadable ones.
	profiles map[identity]*profile
	seeds    map[string]*gardencorev1beta1.Seed
	classes  map[string]*gardencorev1beta1.ExposureClass
	projects map[string]*gardencorev1beta1.Project
	domains  []defaultDomain
	enabled  map[gardencorev1beta1.ClusterType][]autoEnabled
	// asked reports which lists are read.
	askedProjects, askedDomains, askedEnabled bool
}

// New returns the Surroundings at a time. With the zero time, mutations choose no version, as
// expirations are unknown.
func New(around Around, now time.Time) *Surroundings {
	return &Surroundings{
		around: around, now: now, profiles: map[identity]*profile{}, seeds: map[string]*gardencorev1beta1.Seed{},
		classes: map[string]*gardencorev1beta1.ExposureClass{},
	}
}

func core(kind string) schema.GroupKind {
	return schema.GroupKind{Group: gardencorev1beta1.SchemeGroupVersion.Group, Kind: kind}
}

// read returns the typed object; nil if it is missing or broken, which validation reports.
func read[T any](object *unstructured.Unstructured) *T {
	if object == nil {
		return nil
	}
	out := new(T)
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, out) != nil {
		return nil
	}
	return out
}

func (s *Surroundings) seed(name string) *gardencorev1beta1.Seed {
	seed, asked := s.seeds[name]
	if !asked {
		if seed = read[gardencorev1beta1.Seed](s.around.Get(kindSeed, "", name)); seed != nil {
			gardencorev1beta1.SetDefaults_Seed(seed)
		}
		s.seeds[name] = seed
	}
	return seed
}

func (s *Surroundings) exposureClass(name string) *gardencorev1beta1.ExposureClass {
	class, asked := s.classes[name]
	if !asked {
		class = read[gardencorev1beta1.ExposureClass](s.around.Get(kindExposureClass, "", name))
		s.classes[name] = class
	}
	return class
}

// project returns the Project of a namespace.
func (s *Surroundings) project(namespace string) *gardencorev1beta1.Project {
	if !s.askedProjects {
		s.askedProjects, s.projects = true, map[string]*gardencorev1beta1.Project{}
		for _, object := range s.around.List(kindProject) {
			project := read[gardencorev1beta1.Project](object)
			if project == nil || project.Spec.Namespace == nil || s.projects[*project.Spec.Namespace] != nil {
				continue
			}
			gardencorev1beta1.SetDefaults_Project(project)
			s.projects[*project.Spec.Namespace] = project
		}
	}
	return s.projects[namespace]
}

// shoot returns a Shoot with the values that mutations fill in.
func (s *Surroundings) shoot(namespace, name string) *gardencorev1beta1.Shoot {
	shoot := read[gardencorev1beta1.Shoot](s.around.Get(kindShoot, namespace, name))
	if shoot != nil {
		s.Shoot(shoot, nil)
	}
	return shoot
}

// defaultDomain is a parent domain for Shoots of the landscape.
type defaultDomain struct {
	domain, provider string
	credentials      corev1.ObjectReference
	place            string
}

const (
	annotationDomain   = "dns.gardener.cloud/domain"
	annotationProvider = "dns.gardener.cloud/provider"
	annotationPriority = "dns.gardener.cloud/domain-default-priority"
)

// defaultDomains returns the Seed's own default domains, or else the landscape's by priority.
func (s *Surroundings) defaultDomains(seed *gardencorev1beta1.Seed) []defaultDomain {
	if seed != nil && len(seed.Spec.DNS.Defaults) > 0 {
		var own []defaultDomain
		for _, d := range seed.Spec.DNS.Defaults {
			own = append(own, defaultDomain{d.Domain, d.Type, d.CredentialsRef, "Seed " + seed.Name})
		}
		return own
	}
	if s.askedDomains {
		return s.domains
	}
	s.askedDomains = true
	var secrets []*unstructured.Unstructured
	for _, secret := range s.around.List(kindSecret) {
		isDomain := secret.GetLabels()[gardencorev1beta1.GardenRole] == gardencorev1beta1.GardenRoleDefaultDomain
		if isDomain && secret.GetNamespace() == gardencorev1beta1.GardenNamespace && secret.GetAnnotations()[annotationDomain] != "" {
			secrets = append(secrets, secret)
		}
	}
	slices.SortStableFunc(secrets, func(a, b *unstructured.Unstructured) int { return cmp.Compare(priority(b), priority(a)) })
	for _, secret := range secrets {
		s.domains = append(s.domains, defaultDomain{
			domain: secret.GetAnnotations()[annotationDomain], provider: secret.GetAnnotations()[annotationProvider],
			credentials: corev1.ObjectReference{APIVersion: "v1", Kind: kindSecret.Kind, Namespace: secret.GetNamespace(), Name: secret.GetName()},
			place:       "Secret garden/" + secret.GetName(),
		})
	}
	return s.domains
}

// priority returns the priority of a default domain, 0 if it is not a number.
func priority(secret *unstructured.Unstructured) int {
	n, err := strconv.Atoi(secret.GetAnnotations()[annotationPriority])
	if err != nil {
		return 0
	}
	return n
}
