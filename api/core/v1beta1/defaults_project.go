// SPDX-License-Identifier: Apache-2.0

package v1beta1

// SetDefaults_Project sets the defaults of a Project. Creator and owner come from the request and
// are not set.
func SetDefaults_Project(project *Project) {
	spec := &project.Spec
	if spec.Owner != nil {
		setSubjectDefaults(spec.Owner)
	}
	for i := range spec.Members {
		member := &spec.Members[i]
		setSubjectDefaults(&member.Subject)
		if member.Role == "" && len(member.Roles) == 0 {
			member.Role = ProjectMemberViewer
		}
	}
	for i := range spec.DualApprovalForDeletion {
		setDefault(&spec.DualApprovalForDeletion[i].IncludeServiceAccounts, true)
	}
	if spec.Namespace != nil && *spec.Namespace == GardenNamespace {
		// Clusters of the landscape itself may use protected Seeds.
		tolerations := ensureBlock(&spec.Tolerations)
		tolerations.Whitelist = addToleration(tolerations.Whitelist, SeedTaintProtected)
		tolerations.Defaults = addToleration(tolerations.Defaults, SeedTaintProtected)
	}
}
