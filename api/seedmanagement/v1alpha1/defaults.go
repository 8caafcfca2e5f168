// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	defaultGardenletReplicas                  = 2
	defaultGardenletRevisionHistoryLimit      = 2
	defaultManagedSeedSetReplicas             = 1
	defaultManagedSeedSetRevisionHistoryLimit = 10
	// defaultShootCapacity is the number of Shoots that a Seed accepts.
	defaultShootCapacity = "250"
	tagLatest            = "latest"

	gardenletConfigAPIVersion = "gardenlet.config.gardener.cloud/v1alpha1"
	gardenletConfigKind       = "GardenletConfiguration"
)

// SetDefaults_ManagedSeed sets the defaults of a ManagedSeed that do not depend on its Shoot.
func SetDefaults_ManagedSeed(seed *ManagedSeed) {
	gardenlet := &seed.Spec.Gardenlet
	if gardenlet.Deployment == nil {
		gardenlet.Deployment = &GardenletDeployment{}
	}
	SetDefaults_GardenletDeployment(gardenlet.Deployment)
	setGardenletConfigDefaults(&gardenlet.Config)
	setDefault(&gardenlet.Bootstrap, BootstrapToken)
	setDefault(&gardenlet.MergeWithParent, true)
}

// SetDefaults_Gardenlet sets the defaults of a Gardenlet.
func SetDefaults_Gardenlet(gardenlet *Gardenlet) {
	SetDefaults_GardenletDeployment(&gardenlet.Spec.Deployment.GardenletDeployment)
	setGardenletConfigDefaults(&gardenlet.Spec.Config)
}

// SetDefaults_ManagedSeedSet sets the defaults of a ManagedSeedSet. Objects created from its
// templates get their own.
func SetDefaults_ManagedSeedSet(set *ManagedSeedSet) {
	setDefault(&set.Spec.Replicas, defaultManagedSeedSetReplicas)
	setDefault(&set.Spec.RevisionHistoryLimit, defaultManagedSeedSetRevisionHistoryLimit)
	if set.Spec.UpdateStrategy == nil {
		set.Spec.UpdateStrategy = &UpdateStrategy{}
	}
	setDefault(&set.Spec.UpdateStrategy.Type, RollingUpdateStrategyType)
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		setDefault(&rolling.Partition, 0)
	}
}

// SetDefaults_GardenletDeployment sets the defaults of the deployment of a gardenlet.
func SetDefaults_GardenletDeployment(deployment *GardenletDeployment) {
	setDefault(&deployment.ReplicaCount, defaultGardenletReplicas)
	setDefault(&deployment.RevisionHistoryLimit, defaultGardenletRevisionHistoryLimit)
	setDefault(&deployment.EnableHealthProbes, true)
	if deployment.Image == nil {
		deployment.Image = &Image{}
	}
	policy := corev1.PullIfNotPresent
	if tag := deployment.Image.Tag; tag != nil && *tag == tagLatest {
		policy = corev1.PullAlways
	}
	setDefault(&deployment.Image.PullPolicy, policy)
}

// setGardenletConfigDefaults sets the kind of a gardenlet configuration and the number of Shoots
// that the Seed accepts. It leaves an unreadable configuration unchanged: validation reports it.
func setGardenletConfigDefaults(config *runtime.RawExtension) {
	fields := map[string]any{}
	if len(config.Raw) > 0 && string(config.Raw) != "null" && utiljson.Unmarshal(config.Raw, &fields) != nil {
		return
	}
	changed := false
	put := func(in map[string]any, name string, value any) {
		if _, there := in[name]; !there {
			in[name], changed = value, true
		}
	}
	if len(fields) == 0 {
		put(fields, "apiVersion", gardenletConfigAPIVersion)
		put(fields, "kind", gardenletConfigKind)
	} else if fields["kind"] != gardenletConfigKind {
		return
	}
	put(fields, "resources", map[string]any{})
	resources, ok := fields["resources"].(map[string]any)
	if !ok {
		return
	}
	put(resources, "capacity", map[string]any{})
	capacity, ok := resources["capacity"].(map[string]any)
	if !ok {
		return
	}
	put(capacity, "shoots", defaultShootCapacity)
	if data, err := json.Marshal(fields); changed && err == nil {
		config.Raw = data
	}
}

// setDefault sets an unset field.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
