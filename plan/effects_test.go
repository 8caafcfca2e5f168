// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
)

func TestEffects(t *testing.T) {
	definition := func(version string) string {
		return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v1, served: true, " + version + "}]}}"
	}
	versions := func(stored, one, two string) string {
		return fmt.Sprintf("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v1, served: true, storage: %v, schema: {openAPIV3Schema: {%s}}}, {name: v2, served: true, storage: %v, schema: {openAPIV3Schema: {%s}}}]}}",
			stored == "v1", one, stored == "v2", two)
	}
	for name, c := range map[string]struct {
		old, new string
		want     []string
	}{
		"data goes on deletion": {"{apiVersion: apps/v1, kind: StatefulSet, spec: {}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}}", []string{"from now on, its deletion also deletes its data"}},
		"data goes on scaling":  {"{apiVersion: apps/v1, kind: StatefulSet, spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: Retain}}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}}", []string{"from now on, a scale-down also deletes the data of removed pods"}},
		"data goes now":         {"{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}}", []string{"deletes the data of removed pods"}},
		"data and pods go":      {"{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 0, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}}", []string{"stops all its pods", "deletes the data of removed pods"}},
		"data stays":            {"{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1}}", nil},
		"more pods":             {"{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 1, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}}", nil},
		"replaced at once":      {"{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: Recreate}, template: {a: 1}}}", "{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: Recreate}, template: {a: 2}}}", []string{"stops all its pods, then starts new ones"}},
		"to be replaced":        {"{apiVersion: apps/v1, kind: Deployment, spec: {}}", "{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: Recreate}}}", []string{"from now on all its pods stop before new ones start"}},
		"paused":                {"{apiVersion: apps/v1, kind: Deployment, spec: {paused: true, template: {a: 1}}}", "{apiVersion: apps/v1, kind: Deployment, spec: {paused: true, template: {a: 2}}}", []string{"its pods change when it is no longer paused"}},
		"replica set":           {"{apiVersion: apps/v1, kind: ReplicaSet, spec: {template: {a: 1}}}", "{apiVersion: apps/v1, kind: ReplicaSet, spec: {template: {a: 2}}}", []string{"its pods change when they are deleted"}},
		"partition":             {"{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, template: {a: 1}, updateStrategy: {rollingUpdate: {partition: 2}}}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, template: {a: 2}, updateStrategy: {rollingUpdate: {partition: 2}}}}", []string{"rolls its pods from number 2 on"}},
		"partition, numbers":    {"{apiVersion: apps/v1, kind: StatefulSet, spec: {ordinals: {start: 5}, template: {a: 1}, updateStrategy: {rollingUpdate: {partition: 2}}}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {ordinals: {start: 5}, template: {a: 2}, updateStrategy: {rollingUpdate: {partition: 2}}}}", []string{"rolls its pods from number 7 on"}},
		"partition above all":   {"{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, template: {a: 1}, updateStrategy: {rollingUpdate: {partition: 3}}}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, template: {a: 2}, updateStrategy: {rollingUpdate: {partition: 3}}}}", []string{"its pods change when its partition is lowered"}},
		"no partition":          {"{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, template: {a: 1}, updateStrategy: {rollingUpdate: {partition: 0}}}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, template: {a: 2}, updateStrategy: {rollingUpdate: {partition: 0}}}}", []string{"rolls its pods"}},
		"partition falls":       {"{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, template: {a: 1}, updateStrategy: {rollingUpdate: {partition: 3}}}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 3, template: {a: 1}, updateStrategy: {rollingUpdate: {partition: 1}}}}", []string{"rolls the pods that its partition has excluded, if any"}},
		"no longer balanced":    {"{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}", "{apiVersion: v1, kind: Service, spec: {}}", []string{"releases the load balancer address", "changes how it is reached: ClusterIP"}},
		"other pods":            {"{apiVersion: v1, kind: Service, spec: {selector: {a: b}}}", "{apiVersion: v1, kind: Service, spec: {selector: {a: c}}}", []string{"sends its traffic to other pods"}},
		"volume is deleted":     {"{apiVersion: v1, kind: PersistentVolume, spec: {persistentVolumeReclaimPolicy: Retain}}", "{apiVersion: v1, kind: PersistentVolume, spec: {persistentVolumeReclaimPolicy: Delete}}", []string{"from now on, the deletion of its claim also deletes its data"}},
		"volume grows":          {"{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 1Gi}}}}", "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 2Gi}}}}", []string{"makes the volume larger, if its class allows that"}},
		"version not served":    {definition("storage: false"), "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v1, served: false, storage: false}]}}", []string{"an API version is no longer served: v1"}},
		"property goes": {definition("schema: {openAPIV3Schema: {properties: {spec: {properties: {a: {type: string}, b: {items: {properties: {c: {type: string}, d: {type: string}}}}}}}}}"),
			definition("schema: {openAPIV3Schema: {properties: {spec: {properties: {b: {items: {properties: {c: {type: string}}}}}}}}}"), []string{"prunes stored values: spec.a", "prunes stored values: spec.b[].d"}},
		"property described": {definition("schema: {openAPIV3Schema: {properties: {spec: {description: a}}}}"), definition("schema: {openAPIV3Schema: {properties: {spec: {type: object}}}}"), nil},
		"required":           {definition("schema: {openAPIV3Schema: {properties: {spec: {type: object}}}}"), definition("schema: {openAPIV3Schema: {properties: {spec: {type: object, required: [a]}}}}"), []string{"refuses objects without fields that are required now: spec"}},
		"unknown values":     {definition("schema: {openAPIV3Schema: {x-kubernetes-preserve-unknown-fields: true}}"), definition("schema: {openAPIV3Schema: {type: object}}"), []string{"prunes stored values outside the schema"}},
		"other storage version": {versions("v1", "properties: {metadata: {type: object}, spec: {properties: {a: {}, m: {additionalProperties: {properties: {x: {}, w: {}}}}, l: {items: {properties: {c: {}}}}, free: {x-kubernetes-preserve-unknown-fields: true}, kept: {x-kubernetes-preserve-unknown-fields: true}}}}", "properties: {spec: {properties: {b: {}, m: {additionalProperties: {properties: {x: {}}}}, l: {items: {properties: {d: {}}}}, free: {properties: {z: {}}}, kept: {x-kubernetes-preserve-unknown-fields: true}}}}"),
			versions("v2", "properties: {metadata: {type: object}, spec: {properties: {a: {}, m: {additionalProperties: {properties: {x: {}, w: {}}}}, l: {items: {properties: {c: {}}}}, free: {x-kubernetes-preserve-unknown-fields: true}, kept: {x-kubernetes-preserve-unknown-fields: true}}}}", "properties: {spec: {properties: {b: {}, m: {additionalProperties: {properties: {x: {}}}}, l: {items: {properties: {d: {}}}}, free: {properties: {z: {}}}, kept: {x-kubernetes-preserve-unknown-fields: true}}}}"),
			[]string{"prunes stored values, which version v2 does not have: spec.a, fields outside its schema of spec.free, spec.l[].c, spec.m[].w"}},
		"unknown in another version": {versions("v1", "x-kubernetes-preserve-unknown-fields: true", "properties: {spec: {}}"), versions("v2", "x-kubernetes-preserve-unknown-fields: true", "properties: {spec: {}}"),
			[]string{"prunes stored values, which version v2 does not have: fields outside its schema"}},
		"a wider version": {versions("v1", "properties: {spec: {properties: {a: {}}}}", "properties: {spec: {x-kubernetes-preserve-unknown-fields: true}}"), versions("v2", "properties: {spec: {properties: {a: {}}}}", "properties: {spec: {x-kubernetes-preserve-unknown-fields: true}}"), nil},
		"a new version": {definition("storage: true, schema: {openAPIV3Schema: {properties: {a: {}}}}"), versions("v2", "properties: {a: {}}", "properties: {b: {}}"),
			[]string{"prunes stored values, which version v2 does not have: a"}},
		"no eviction":         {"{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 1}}", "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 0}}", []string{"forbids every eviction: nodes with its pods cannot be drained"}},
		"all available":       {"{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1}}", "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 100%}}", []string{"forbids every eviction: nodes with its pods cannot be drained"}},
		"an eviction":         {"{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 0}}", "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 1}}", nil},
		"webhook must answer": {"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, webhooks: [{name: a, failurePolicy: Ignore}]}", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, webhooks: [{name: a}]}", []string{"requests fail while the webhook does not answer"}},
		"cron stops":          {"{apiVersion: batch/v1, kind: CronJob, spec: {suspend: false}}", "{apiVersion: batch/v1, kind: CronJob, spec: {suspend: true}}", []string{"no longer runs"}},
		"of another group":    {"{apiVersion: x.example.com/v1, kind: PersistentVolume, spec: {persistentVolumeReclaimPolicy: Retain}}", "{apiVersion: x.example.com/v1, kind: PersistentVolume, spec: {persistentVolumeReclaimPolicy: Delete}}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			old, new := object(t, c.old), object(t, c.new)
			item := change.Item{Action: change.Change, Object: change.RefOf(new), Fields: redact.Masking{}.CompareMeaning(old.Object, new.Object)}
			assert.Equal(t, c.want, Consequences(item, old, new))
		})
	}
	budget := object(t, "{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 0}}")
	assert.Equal(t, []string{"forbids every eviction: nodes with its pods cannot be drained"}, Consequences(change.Item{Action: change.Create, Object: change.RefOf(budget)}, nil, budget))
	set := object(t, "{apiVersion: apps/v1, kind: StatefulSet, spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}}")
	assert.Equal(t, []string{"loses stored data"}, Consequences(change.Item{Action: change.Delete, Object: change.RefOf(set)}, set, nil))
}
