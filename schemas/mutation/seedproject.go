// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	seedmanagementv1alpha1 "github.com/pergola-dev/pergola/api/seedmanagement/v1alpha1"
)

// MutateSeed applies API defaults and mutations to a Seed. The result contains only the mutations.
func (s *Mutator) MutateSeed(seed *gardencorev1beta1.Seed) Result {
	gardencorev1beta1.SetDefaults_Seed(seed)
	if seed.DeletionTimestamp != nil {
		return Result{}
	}
	r := &changeRecorder{kind: kindSeed.Kind, name: seed.Name}
	wanted := labelSet{}
	s.addExtensionLabels(wanted, gardencorev1beta1.ClusterTypeSeed, seed.Spec.Extensions, false)
	wanted.addType(labelProvider, seed.Spec.Provider.Type)
	if seed.Spec.Backup != nil {
		wanted.addType(labelProvider, seed.Spec.Backup.Provider)
	}
	if seed.Spec.DNS.Provider != nil {
		wanted.addType(labelDNSRecord, seed.Spec.DNS.Provider.Type)
	}
	r.syncExtensionLabels(seed, wanted)
	r.syncSeedLabels(seed, &seed.Name, s.parentSeed(seed.Name))
	return r.Result
}

// parentSeed returns the Seed of the Shoot that a ManagedSeed registers as Seed.
func (s *Mutator) parentSeed(seed string) *string {
	managed := toTyped[seedmanagementv1alpha1.ManagedSeed](s.lister.Get(kindManagedSeed, gardencorev1beta1.GardenNamespace, seed))
	if managed == nil || managed.Spec.Shoot == nil {
		return nil
	}
	shoot := toTyped[gardencorev1beta1.Shoot](s.lister.Get(kindShoot, managed.Namespace, managed.Spec.Shoot.Name))
	if shoot == nil {
		return nil
	}
	return shoot.Spec.SeedName
}

// MutateProject applies API defaults and mutations to a Project. The result contains only the
// mutations. old is nil for a new Project. A Project without owner and owner member stays without
// one, because only the API knows its creator. Source: plugin/pkg/project/mutator.
func (s *Mutator) MutateProject(project, old *gardencorev1beta1.Project) Result {
	gardencorev1beta1.SetDefaults_Project(project)
	if project.DeletionTimestamp != nil {
		return Result{}
	}
	r := &changeRecorder{kind: kindProject.Kind, name: project.Name}
	spec := &project.Spec
	if old == nil && spec.Owner == nil {
		for _, member := range spec.Members {
			if member.Role == gardencorev1beta1.ProjectMemberOwner || slices.Contains(member.Roles, gardencorev1beta1.ProjectMemberOwner) {
				r.mutationID = projectOwner
				spec.Owner = member.Subject.DeepCopy()
				r.recordChange("spec.owner", *spec.Owner, "the first member with the role owner")
				break
			}
		}
	}
	if spec.Owner == nil || slices.ContainsFunc(spec.Members, func(m gardencorev1beta1.ProjectMember) bool { return isSameSubject(m.Subject, *spec.Owner) }) {
		return r.Result
	}
	r.mutationID = projectMembers
	member := gardencorev1beta1.ProjectMember{
		Subject: *spec.Owner, Role: gardencorev1beta1.ProjectMemberAdmin, Roles: []string{gardencorev1beta1.ProjectMemberOwner},
	}
	r.recordChange(fmt.Sprintf("spec.members[%d]", len(spec.Members)), member, "the owner of the Project")
	spec.Members = append(spec.Members, member)
	return r.Result
}

func isSameSubject(a, b rbacv1.Subject) bool { return a == b }
