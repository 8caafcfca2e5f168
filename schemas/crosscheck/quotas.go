// SPDX-License-Identifier: Apache-2.0

package crosscheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/schemas"
)

// checkQuota checks that the Shoots of a Quota stay within it at the maximum size of their pools. A
// project Quota applies to each namespace separately. Source: plugin/pkg/shoot/quotavalidator.
func (c *checker) checkQuota() {
	limits := mapAt(c.object(), "spec", "metrics")
	byProject := textAt(c.object(), "spec", "scope", "kind") == kindProject.Kind
	used, shoots := map[string]corev1.ResourceList{}, map[string][]string{}
	for _, in := range c.allOfKind(kindShoot) {
		shoot := in.Content().Object
		id := identityOf(in)
		if !c.hasCurrentQuota(shoot, id.namespace) {
			continue
		}
		scope := ""
		if byProject {
			scope = id.namespace
		}
		if used[scope] == nil {
			used[scope] = corev1.ResourceList{}
		}
		c.addShootUsage(used[scope], shoot, id.namespace)
		shoots[scope] = append(shoots[scope], id.namespace+"/"+id.name)
	}
	for _, scope := range slices.Sorted(maps.Keys(used)) {
		for _, metric := range slices.Sorted(maps.Keys(limits)) {
			limit, err := resource.ParseQuantity(fmt.Sprint(limits[metric]))
			asked := used[scope][corev1.ResourceName(metric)]
			if err != nil || asked.Cmp(limit) <= 0 {
				continue
			}
			slices.Sort(shoots[scope])
			c.report("spec.metrics["+metric+"]", schemas.TypeForbidden, "it allows %s, but its Shoots need up to %s (%s), so new or growing Shoots are rejected; raise it, or make pools smaller",
				limit.String(), asked.String(), joinWithLimit(shoots[scope]))
		}
	}
}

// hasCurrentQuota reports whether the binding of a Shoot names the current Quota.
func (c *checker) hasCurrentQuota(shoot map[string]any, namespace string) bool {
	for field, kind := range map[string]schema.GroupKind{"credentialsBindingName": kindCredentialsBinding, "secretBindingName": coreKind("SecretBinding")} {
		name := textAt(shoot, "spec", field)
		if name == "" {
			continue
		}
		binding := c.findObject(identity{kind, namespace, name})
		if binding == nil {
			continue
		}
		for _, item := range listAt(binding.Content().Object, "quotas") {
			ref, _ := item.(map[string]any)
			if textAt(ref, "name") == c.name() && (textAt(ref, "namespace") == c.namespace() || textAt(ref, "namespace") == "" && namespace == c.namespace()) {
				return true
			}
		}
	}
	return false
}

// addShootUsage adds the maximum use of a Shoot. The cloud profile maps volume types to classes. A
// Shoot has one load balancer, and a second for the ingress controller.
func (c *checker) addShootUsage(used corev1.ResourceList, shoot map[string]any, namespace string) {
	add := func(metric corev1.ResourceName, amount resource.Quantity, times int64) {
		amount.Mul(times)
		sum := used[metric]
		sum.Add(amount)
		used[metric] = sum
	}
	one := resource.MustParse("1")
	add(gardencorev1beta1.QuotaMetricLoadbalancer, one, 1)
	if valueAt(shoot, "spec", "addons", "nginxIngress", "enabled") == true {
		add(gardencorev1beta1.QuotaMetricLoadbalancer, one, 1)
	}
	id, _ := profileReference(shoot, namespace)
	c.recordQuery(landscapeQuery{topicProfile, id})
	p := c.loadProfile(id)
	if p == nil {
		return
	}
	for _, item := range listAt(shoot, "spec", "provider", "workers") {
		worker, _ := item.(map[string]any)
		machine, most := p.machineTypes[textAt(worker, "machine", "type")], numberAt(worker, "maximum")
		if machine == nil {
			continue
		}
		add(gardencorev1beta1.QuotaMetricCPU, machine.CPU, most)
		add(gardencorev1beta1.QuotaMetricGPU, machine.GPU, most)
		add(gardencorev1beta1.QuotaMetricMemory, machine.Memory, most)
		class, size := "", resource.Quantity{}
		if machine.Storage != nil && machine.Storage.StorageSize != nil {
			class, size = machine.Storage.Class, *machine.Storage.StorageSize
		} else if volume := p.volumeTypes[textAt(worker, "volume", "type")]; volume != nil {
			class = volume.Class
			// the structure reports an invalid size
			size, _ = resource.ParseQuantity(textAt(worker, "volume", "size"))
		}
		if class == gardencorev1beta1.VolumeClassStandard || class == gardencorev1beta1.VolumeClassPremium {
			add(corev1.ResourceName("storage."+class), size, most)
		}
	}
}

func joinWithLimit(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
