package v1alpha1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const (
	defaultGardenletReplicas  = 2
	defaultGardenletRevisions = 2
	defaultSetReplicas        = 1
	defaultSetRevisions       = 10
	// defaultShootCapacity is the number of Shoots that a Seed accepts.
	defaultShootCapacity = "250"
	tagLatest            = "latest"

	configAPIVersion = "gardenlet.config.gardener.cloud/v1alpha1"
	configKind       = "GardenletConfiguration"
)

// SetDefaults_ManagedSeed sets the defaults of a ManagedSeed that do not depend on its Shoot.
func SetDefaults_ManagedSeed(seed *ManagedSeed) {
	gardenlet := &seed.Spec.Gardenlet
	if gardenlet.Deployment == nil {
		gardenlet.Deployment = &GardenletDeployment{}
	}
	SetDefaults_GardenletDeployment(gardenlet.Deployment)
	defaultConfig(&gardenlet.Config)
	orDefault(&gardenlet.Bootstrap, BootstrapToken)
	orDefault(&gardenlet.MergeWithParent, true)
}

// SetDefaults_Gardenlet sets the defaults of a Gardenlet.
func SetDefaults_Gardenlet(gardenlet *Gardenlet) {
	SetDefaults_GardenletDeployment(&gardenlet.Spec.Deployment.GardenletDeployment)
	defaultConfig(&gardenlet.Spec.Config)
}

// SetDefaults_ManagedSeedSet sets the defaults of a ManagedSeedSet. Objects created from its
// templates get their own.
func SetDefaults_ManagedSeedSet(set *ManagedSeedSet) {
	orDefault(&set.Spec.Replicas, defaultSetReplicas)
	orDefault(&set.Spec.RevisionHistoryLimit, defaultSetRevisions)
	if set.Spec.UpdateStrategy == nil {
		set.Spec.UpdateStrategy = &UpdateStrategy{}
	}
	orDefault(&set.Spec.UpdateStrategy.Type, RollingUpdateStrategyType)
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		orDefault(&rolling.Partition, 0)
	}
}

// SetDefaults_GardenletDeployment sets the defaults of the deployment of a gardenlet.
func SetDefaults_GardenletDeployment(deployment *GardenletDeployment) {
	orDefault(&deployment.ReplicaCount, defaultGardenletReplicas)
	orDefault(&deployment.RevisionHistoryLimit, defaultGardenletRevisions)
	orDefault(&deployment.EnableHealthProbes, true)
	if deployment.Image == nil {
		deployment.Image = &Image{}
	}
	policy := corev1.PullIfNotPresent
	if tag := deployment.Image.Tag; tag != nil && *tag == tagLatest {
		policy = corev1.PullAlways
	}
	orDefault(&deployment.Image.PullPolicy, policy)
}

// defaultConfig sets the kind of a gardenlet configuration and the number of Shoots that the Seed
// accepts. It leaves an unreadable configuration unchanged: validation reports it.
func defaultConfig(config *runtime.RawExtension) {
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
		put(fields, "apiVersion", configAPIVersion)
		put(fields, "kind", configKind)
	} else if fields["kind"] != configKind {
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

// orDefault sets an unset field.
func orDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
