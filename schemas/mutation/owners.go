package mutation

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
)

// Seed gives a Seed the defaults of the API and what mutations fill in; only the latter is in the
// result.
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

// parent is the Seed of the Shoot that became a Seed by a ManagedSeed.
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

// Project gives a Project the defaults of the API and what mutations fill in; only the latter is in
// the result. old is the one before the change, nil for a new one. A Project that names no owner
// and has no member with this role stays without: only the API knows who makes it. Source:
// plugin/pkg/project/mutator.
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
