package mutation

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
)

// Seed applies API defaults and mutations to a Seed. The result contains only the mutations.
func (s *Surroundings) Seed(seed *gardencorev1beta1.Seed) Result {
	gardencorev1beta1.SetDefaults_Seed(seed)
	if seed.DeletionTimestamp != nil {
		return Result{}
	}
	r := &recorder{kind: kindSeed.Kind, name: seed.Name}
	wanted := labelSet{}
	s.extensions(wanted, gardencorev1beta1.ClusterTypeSeed, seed.Spec.Extensions, false)
	wanted.add(labelProvider, seed.Spec.Provider.Type)
	if seed.Spec.Backup != nil {
		wanted.add(labelProvider, seed.Spec.Backup.Provider)
	}
	if seed.Spec.DNS.Provider != nil {
		wanted.add(labelDNSRecord, seed.Spec.DNS.Provider.Type)
	}
	r.extensionLabels(seed, wanted)
	r.seedLabels(seed, &seed.Name, s.parent(seed.Name))
	return r.Result
}

// parent returns the Seed of the Shoot that a ManagedSeed registers as Seed.
func (s *Surroundings) parent(seed string) *string {
	managed := read[seedmanagementv1alpha1.ManagedSeed](s.around.Get(kindManagedSeed, gardencorev1beta1.GardenNamespace, seed))
	if managed == nil || managed.Spec.Shoot == nil {
		return nil
	}
	shoot := read[gardencorev1beta1.Shoot](s.around.Get(kindShoot, managed.Namespace, managed.Spec.Shoot.Name))
	if shoot == nil {
		return nil
	}
	return shoot.Spec.SeedName
}

// Project applies API defaults and mutations to a Project. The result contains only the mutations.
// old is nil for a new Project. A Project without owner and owner member stays without, as only the
// API knows its creator. Source: plugin/pkg/project/mutator.
func (s *Surroundings) Project(project, old *gardencorev1beta1.Project) Result {
	gardencorev1beta1.SetDefaults_Project(project)
	if project.DeletionTimestamp != nil {
		return Result{}
	}
	r := &recorder{kind: kindProject.Kind, name: project.Name}
	spec := &project.Spec
	if old == nil && spec.Owner == nil {
		for _, member := range spec.Members {
			if member.Role == gardencorev1beta1.ProjectMemberOwner || slices.Contains(member.Roles, gardencorev1beta1.ProjectMemberOwner) {
				r.id = projectOwner
				spec.Owner = member.Subject.DeepCopy()
				r.filled("spec.owner", *spec.Owner, "the first member with the role owner")
				break
			}
		}
	}
	if spec.Owner == nil || slices.ContainsFunc(spec.Members, func(m gardencorev1beta1.ProjectMember) bool { return sameSubject(m.Subject, *spec.Owner) }) {
		return r.Result
	}
	r.id = projectMembers
	member := gardencorev1beta1.ProjectMember{
		Subject: *spec.Owner, Role: gardencorev1beta1.ProjectMemberAdmin, Roles: []string{gardencorev1beta1.ProjectMemberOwner},
	}
	r.filled(fmt.Sprintf("spec.members[%d]", len(spec.Members)), member, "the owner of the Project")
	spec.Members = append(spec.Members, member)
	return r.Result
}

func sameSubject(a, b rbacv1.Subject) bool { return a == b }
