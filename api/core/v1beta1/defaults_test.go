// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/pergola-dev/pergola/api/core/v1beta1"
)

func TestSeedDefaults(t *testing.T) {
	seed := &v1beta1.Seed{}
	v1beta1.SetDefaults_Seed(seed)
	settings := seed.Spec.Settings
	assert.Equal(t, []v1beta1.IPFamily{v1beta1.IPFamilyIPv4}, seed.Spec.Networks.IPFamilies)
	assert.True(t, settings.Scheduling.Visible)
	assert.True(t, settings.VerticalPodAutoscaler.Enabled)
	assert.True(t, settings.DependencyWatchdog.Weeder.Enabled)
	assert.True(t, settings.DependencyWatchdog.Prober.Enabled)
	assert.True(t, *settings.LoadBalancerServices.ZonalIngress.Enabled)
	assert.False(t, settings.TopologyAwareRouting.Enabled)
	assert.False(t, settings.PersistentVolumeClaimAutoscaler.Enabled)
	assert.Nil(t, settings.ZoneSelection)
	assert.Equal(t, "2", settings.ExcessCapacityReservation.Configs[0].Resources.Cpu().String())
	assert.Equal(t, "6Gi", settings.ExcessCapacityReservation.Configs[0].Resources.Memory().String())

	again := seed.DeepCopy()
	v1beta1.SetDefaults_Seed(again)
	assert.Equal(t, seed, again)
}

func TestSeedExcessCapacity(t *testing.T) {
	given := []v1beta1.SeedSettingExcessCapacityReservationConfig{{NodeSelector: map[string]string{"a": "b"}}}
	for name, test := range map[string]struct {
		given v1beta1.SeedSettingExcessCapacityReservation
		want  int
	}{
		"unset":   {want: 1},
		"on":      {given: v1beta1.SeedSettingExcessCapacityReservation{Enabled: ptr.To(true)}, want: 1},
		"off":     {given: v1beta1.SeedSettingExcessCapacityReservation{Enabled: ptr.To(false)}, want: 0},
		"configs": {given: v1beta1.SeedSettingExcessCapacityReservation{Configs: given}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &v1beta1.Seed{Spec: v1beta1.SeedSpec{Settings: &v1beta1.SeedSettings{ExcessCapacityReservation: &test.given}}}
			v1beta1.SetDefaults_Seed(seed)
			configs := seed.Spec.Settings.ExcessCapacityReservation.Configs
			assert.Len(t, configs, test.want)
			if test.given.Configs != nil && name == "configs" {
				assert.Equal(t, given, configs)
			}
		})
	}
}

func TestProjectDefaults(t *testing.T) {
	project := &v1beta1.Project{Spec: v1beta1.ProjectSpec{
		Owner: &rbacv1.Subject{Kind: "User", Name: "alice"},
		Members: []v1beta1.ProjectMember{
			{Subject: rbacv1.Subject{Kind: "User", Name: "bob"}},
			{Subject: rbacv1.Subject{Kind: "Group", Name: "ops"}, Role: v1beta1.ProjectMemberAdmin},
			{Subject: rbacv1.Subject{Kind: "ServiceAccount", Name: "robot", Namespace: "garden-dev"}, Roles: []string{"uam"}},
		},
		DualApprovalForDeletion: []v1beta1.DualApprovalForDeletion{{Resource: "shoots"}},
	}}
	v1beta1.SetDefaults_Project(project)
	assert.Equal(t, rbacv1.GroupName, project.Spec.Owner.APIGroup)
	assert.Equal(t, rbacv1.GroupName, project.Spec.Members[0].APIGroup)
	assert.Equal(t, "viewer", project.Spec.Members[0].Role)
	assert.Equal(t, "admin", project.Spec.Members[1].Role)
	assert.Empty(t, project.Spec.Members[2].Role)
	assert.Empty(t, project.Spec.Members[2].APIGroup, "service accounts are in the core group")
	assert.True(t, *project.Spec.DualApprovalForDeletion[0].IncludeServiceAccounts)
	assert.Nil(t, project.Spec.Tolerations)
	assert.Nil(t, project.Spec.CreatedBy)
}

func TestProjectDefaultsInNamespaceGarden(t *testing.T) {
	protected := []v1beta1.Toleration{{Key: v1beta1.SeedTaintProtected}}
	for _, given := range []*v1beta1.ProjectTolerations{nil, {Whitelist: protected}} {
		project := &v1beta1.Project{Spec: v1beta1.ProjectSpec{Namespace: ptr.To("garden"), Tolerations: given.DeepCopy()}}
		v1beta1.SetDefaults_Project(project)
		assert.Equal(t, &v1beta1.ProjectTolerations{Defaults: protected, Whitelist: protected}, project.Spec.Tolerations)
	}
}

func TestCloudProfileDefaults(t *testing.T) {
	profile := func(capabilities ...v1beta1.CapabilityDefinition) *v1beta1.CloudProfile {
		profile := &v1beta1.CloudProfile{Spec: v1beta1.CloudProfileSpec{
			MachineCapabilities: capabilities,
			MachineImages: []v1beta1.MachineImage{{Name: "local", Versions: []v1beta1.MachineImageVersion{
				{ExpirableVersion: v1beta1.ExpirableVersion{Version: "1.0.0"}},
				{ExpirableVersion: v1beta1.ExpirableVersion{Version: "2.0.0"}, Architectures: []string{"arm64"}},
			}}},
			MachineTypes: []v1beta1.MachineType{{Name: "local"}, {Name: "old", Usable: ptr.To(false)}},
			VolumeTypes:  []v1beta1.VolumeType{{Name: "default"}},
		}}
		v1beta1.SetDefaults_CloudProfile(profile)
		return profile
	}
	spec := profile().Spec
	assert.Equal(t, v1beta1.UpdateStrategyMajor, *spec.MachineImages[0].UpdateStrategy)
	assert.Equal(t, []v1beta1.CRI{{Name: "containerd"}}, spec.MachineImages[0].Versions[0].CRI)
	assert.Equal(t, []string{"amd64"}, spec.MachineImages[0].Versions[0].Architectures)
	assert.Equal(t, []string{"arm64"}, spec.MachineImages[0].Versions[1].Architectures)
	assert.Equal(t, "amd64", *spec.MachineTypes[0].Architecture)
	assert.True(t, *spec.MachineTypes[0].Usable)
	assert.False(t, *spec.MachineTypes[1].Usable)
	assert.True(t, *spec.VolumeTypes[0].Usable)

	spec = profile(v1beta1.CapabilityDefinition{Name: "architecture", Values: []string{"arm64"}}).Spec
	assert.Empty(t, spec.MachineImages[0].Versions[0].Architectures, "capabilities say which architectures there are")
	assert.Nil(t, spec.MachineTypes[0].Architecture)
}

func TestErrorCodeIsRetryable(t *testing.T) {
	for code, retryable := range map[v1beta1.ErrorCode]bool{
		v1beta1.ErrorInfraUnauthenticated: false, v1beta1.ErrorInfraUnauthorized: false, v1beta1.ErrorInfraQuotaExceeded: false,
		v1beta1.ErrorInfraRateLimitsExceeded: false, v1beta1.ErrorInfraDependencies: false, v1beta1.ErrorConfigurationProblem: false,
		v1beta1.ErrorProblematicWebhook: false, v1beta1.ErrorRetryableInfraDependencies: true,
		v1beta1.ErrorRetryableConfigurationProblem: true, v1beta1.ErrorInfraResourcesDepleted: true,
		v1beta1.ErrorCleanupClusterResources: true,
	} {
		assert.Equal(t, retryable, code.IsRetryable(), code)
	}
}
