// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pergola-dev/pergola/change"
)

// TestDroppedFields: apply reports the fields that the API server accepts and drops, in every run,
// and so does every plan. All of these gates are disabled in the server's release.
func TestDroppedFields(t *testing.T) {
	for name, c := range map[string]struct {
		declared string
		dropped  []string
	}{
		"field of an item": {deploymentWith(`{os: {name: linux}, containers: [{name: c, image: i, lifecycle: {stopSignal: SIGTERM, preStop: {sleep: {seconds: 1}}}}]}`),
			[]string{`spec.template.spec.containers[name="c"].lifecycle.stopSignal`}},
		"of two items": {deploymentWith(`{os: {name: linux}, containers: [{name: c, image: i, lifecycle: {stopSignal: SIGTERM, preStop: {sleep: {seconds: 1}}}}, {name: d, image: i, lifecycle: {stopSignal: SIGTERM, preStop: {sleep: {seconds: 1}}}}]}`),
			[]string{`spec.template.spec.containers[name="c"].lifecycle.stopSignal`, `spec.template.spec.containers[name="d"].lifecycle.stopSignal`}},
		"structure": {deploymentWith(`{schedulingGroup: {podGroupName: g}, containers: [{name: c, image: i}]}`),
			[]string{"spec.template.spec.schedulingGroup"}},
		"inside of an atomic list": {deploymentWith(`{containers: [{name: c, image: i}], volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: b, path: p}}, {configMap: {name: m}}]}}]}`),
			[]string{`spec.template.spec.volumes[name="v"].projected.sources[0].clusterTrustBundle`}},
		"claim": {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, namespace: NS}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, dataSourceRef: {apiGroup: example.org, kind: Source, name: s, namespace: other}}}`,
			[]string{"spec.dataSourceRef"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			set := f.set(f.object(c.declared))
			p, err := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
			require.NoError(t, err)
			require.Len(t, p.Items, 1)
			assert.Equal(t, change.Create, p.Items[0].Action)
			for _, path := range c.dropped {
				assert.Contains(t, p.Items[0].Reason, path)
			}
			r := f.mustApply(set)
			assert.Equal(t, c.dropped, r.Objects[0].Dropped)
			assert.Equal(t, droppedNote(c.dropped), r.Objects[0].Message)
			assert.Empty(t, f.requests(func() {
				r = f.mustApply(set)
				assert.Equal(t, Unchanged, r.Objects[0].Action)
				assert.Equal(t, c.dropped, r.Objects[0].Dropped)
			}), "it is told as long as it is so")
			p, err = f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
			require.NoError(t, err)
			require.Len(t, p.Items, 1)
			assert.Equal(t, change.Change, p.Items[0].Action)
			var paths []string
			for _, field := range p.Items[0].Fields {
				paths = append(paths, field.Path)
				assert.Nil(t, field.Old)
				assert.NotNil(t, field.New)
			}
			assert.Equal(t, c.dropped, paths)

			f.c, f.e = f.cluster(), newEngine(Options{})
			f.inv = NewConfigMapInventory(f.c, f.ns, "inventory", nil)
			assert.Equal(t, c.dropped, f.mustApply(set).Objects[0].Dropped, "after a restart, too")
		})
	}
}

// TestNothingIsDropped: a value that the API server writes in another form, or omits because it
// means nothing, is not dropped.
func TestNothingIsDropped(t *testing.T) {
	f := newFixture(t)
	f.create(f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: NS-other}}`))
	objects := []*unstructured.Unstructured{
		f.object(deploymentWith(`{hostNetwork: false, nodeSelector: {}, tolerations: [], terminationGracePeriodSeconds: 0, serviceAccount: s, securityContext: {}, enableServiceLinks: false,
 containers: [{name: c, image: i, command: [], args: [a, a], env: [{name: A, value: ""}, {name: B}], ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}], stdin: false,
 resources: {requests: {cpu: 0.5, memory: "1073741824"}, limits: {}}, livenessProbe: {httpGet: {path: "", port: 80}, initialDelaySeconds: 0}, volumeMounts: [{name: v, mountPath: /v, readOnly: false}]}],
 volumes: [{name: v, emptyDir: {}}, {name: w, projected: {sources: [{configMap: {name: m, optional: false}}]}}]}`)),
		f.object(`{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: NS, labels: {}, annotations: {a: ""}}, data: {old: ""}, stringData: {a: b, empty: ""}}`),
		f.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: NS, finalizers: [], ownerReferences: []}, data: {}, binaryData: {a: "AA=="}, immutable: false}`),
		f.object(`{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {clusterIP: "", selector: {}, externalIPs: [], sessionAffinity: "", ports: [{port: 53, protocol: UDP, name: u}, {port: 53, name: t, targetPort: 0, nodePort: 0}]}}`),
		f.object(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: NS}, spec: {maxReplicas: 3.0, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}, {type: Pods, pods: {metric: {name: a}, target: {type: AverageValue, averageValue: "1000m"}}}]}}`),
		f.object(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: NS}, rules: [{apiGroups: [""], resources: [pods, pods], verbs: [get], resourceNames: []}]}`),
		f.object(`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: np, namespace: NS}, spec: {podSelector: {}, ingress: [{}], egress: []}}`),
		f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: NS-third, namespace: NS}, spec: {}, status: {phase: Active}}`),
		f.object(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: j, namespace: NS}, spec: {schedule: "* * * * *", suspend: false, successfulJobsHistoryLimit: 0, jobTemplate: {spec: {backoffLimit: 0, template: {metadata: {creationTimestamp: null}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}`),
		f.widgets(), f.object(`{apiVersion: NS.example.com/v1, kind: Widget, metadata: {name: w, namespace: NS}, spec: {size: 0}}`),
	}
	set := f.set(objects...)
	for range 2 {
		for _, o := range f.mustApply(set).Objects {
			assert.Empty(t, o.Dropped, o.Ref.String())
			assert.NotContains(t, o.Message, "drops")
		}
	}
	p, err := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
	require.NoError(t, err)
	assert.Empty(t, p.Items)
}

func deploymentWith(pod string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: NS}, spec: {selector: {matchLabels: {a: x}}, template: {metadata: {labels: {a: x}}, spec: ` + pod + `}}}`
}

// TestDeclareReplicasAfterScale: a scale of replicas without an owner leaves none, so a later
// declaration meets no conflict. The plan shows the change.
func TestDeclareReplicasAfterScale(t *testing.T) {
	f := newFixture(t)
	without := f.deployment("d", 1)
	unstructured.RemoveNestedField(without.Object, "spec", "replicas")
	scale := func(n string) {
		f.patch(without, "kubectl-scale", `{"spec":{"replicas":`+n+`}}`, "scale")
		f.eventually("the cache sees the scale", func() bool {
			live, err := f.c.Get(f.ctx, RefOf(without))
			return err == nil && canonicalJSON(nested(live, "spec", "replicas")) == n
		})
	}
	f.mustApply(f.set(without))
	scale("3")
	assert.Equal(t, Unchanged, f.mustApply(f.set(without)).Objects[0].Action, "nobody declares them")
	for _, force := range []bool{false, true} {
		set := f.set(f.deployment("d", 2))
		set.Force = force
		p, err := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
		require.NoError(t, err)
		require.Len(t, p.Items, 1)
		assert.Equal(t, change.Change, p.Items[0].Action)
		assert.Equal(t, []change.Field{{Path: "spec.replicas", Old: int64(3), New: int64(2)}}, p.Items[0].Fields)
	}
	p, err := f.e.Plan(f.ctx, f.c, f.set(f.deployment("d", 3)), f.inv, ApplyOptions{})
	require.NoError(t, err)
	assert.Empty(t, p.Items, "the live value is the declared one")
	f.mustApply(f.set(f.deployment("d", 2)))
	assert.Equal(t, int64(2), nested(f.get(without), "spec", "replicas"))
	scale("5")
	p, err = f.e.Plan(f.ctx, f.c, f.set(f.deployment("d", 2)), f.inv, ApplyOptions{})
	require.NoError(t, err)
	require.Len(t, p.Items, 1, "and when it was scaled since")
	assert.Equal(t, "spec.replicas", p.Items[0].Fields[0].Path)
}
