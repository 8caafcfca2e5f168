// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TestDropAPIManagedFields: fields that the API fills in by its own rules are not declared, even if
// a manifest has them.
func TestDropAPIManagedFields(t *testing.T) {
	for name, c := range map[string]struct{ declared, want string }{
		"aggregated role": {`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, aggregationRule: {clusterRoleSelectors: []}, rules: []}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, aggregationRule: {clusterRoleSelectors: []}}`},
		"aggregated role with rules": {`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, aggregationRule: {}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, aggregationRule: {}}`},
		"role": {`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, aggregationRule: null, rules: []}`,
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: x}, aggregationRule: null, rules: []}`},
		"namespace": {`{apiVersion: v1, kind: Namespace, metadata: {name: x, labels: {a: b, kubernetes.io/metadata.name: x}}, spec: {finalizers: [kubernetes]}}`,
			`{apiVersion: v1, kind: Namespace, metadata: {name: x, labels: {a: b}}, spec: {}}`},
		"label of something else": {`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {kubernetes.io/metadata.name: x}}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {kubernetes.io/metadata.name: x}}}`},
		"request": {`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: x}, spec: {request: eA==, username: u, uid: "1", groups: [g], extra: {a: [b]}}}`,
			`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: x}, spec: {request: eA==}}`},
		"volume": {`{apiVersion: v1, kind: PersistentVolume, metadata: {name: x, annotations: {pv.kubernetes.io/bound-by-controller: "yes", pv.kubernetes.io/provisioned-by: p}}, spec: {claimRef: {namespace: n, name: c, uid: u, resourceVersion: "1"}}}`,
			`{apiVersion: v1, kind: PersistentVolume, metadata: {name: x, annotations: {pv.kubernetes.io/provisioned-by: p}}, spec: {claimRef: {namespace: n, name: c}}}`},
		"claim": {`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, annotations: {pv.kubernetes.io/bind-completed: "yes", volume.kubernetes.io/storage-provisioner: p, a: b}}, spec: {volumeName: v}}`,
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, annotations: {a: b}}, spec: {volumeName: v}}`},
		"token": {`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: x, annotations: {kubernetes.io/service-account.name: s, kubernetes.io/service-account.uid: u}}, data: {token: eA==, ca.crt: eA==, own: eA==}, stringData: {namespace: n}}`,
			`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: x, annotations: {kubernetes.io/service-account.name: s}}, data: {own: eA==}, stringData: {}}`},
		"another Secret": {`{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: x}, data: {token: eA==}}`, `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: x}, data: {token: eA==}}`},
		"deployment": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 4, uid: u, resourceVersion: "1", annotations: {deployment.kubernetes.io/revision: "3", a: b}}, spec: {replicas: 1}, status: {replicas: 1}}`,
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, annotations: {a: b}}, spec: {replicas: 1}}`},
		"service": {`{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30000}]}}`,
			`{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {clusterIP: 10.0.0.1, ports: [{port: 80, nodePort: 30000}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse(t, "n", c.declared)
			dropAPIManagedFields(got)
			assert.Equal(t, parse(t, "n", c.want).Object, got.Object)
		})
	}
}

// TestAggregatedClusterRole: the rules of an aggregated ClusterRole belong to its controller,
// whether the role existed before or not.
func TestAggregatedClusterRole(t *testing.T) {
	const aggregator = "clusterrole-aggregation-controller"
	for name, rules := range map[string]string{"without rules": "", "with empty rules": ", rules: []", "with rules": `, rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]`} {
		for _, existing := range []bool{false, true} {
			for _, force := range []bool{false, true} {
				t.Run(name+map[bool]string{true: ", existing", false: ", new"}[existing]+map[bool]string{true: ", forced", false: ""}[force], func(t *testing.T) {
					f := newFixture(t)
					role := f.object(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {NS: "true"}}]}` + rules + `}`)
					t.Cleanup(func() { _ = f.resource(role).Delete(f.ctx, role.GetName(), metav1.DeleteOptions{}) })
					aggregate := func() {
						_, err := f.resource(role).Apply(f.ctx, role.GetName(), f.object(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS}, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`),
							metav1.ApplyOptions{FieldManager: aggregator, Force: true})
						require.NoError(t, err)
					}
					set := f.set(role)
					set.Force, set.TakeBack = force, true
					if existing {
						before := role.DeepCopy()
						delete(before.Object, "rules")
						f.create(before)
						aggregate()
					}
					f.mustApply(set)
					if !existing {
						aggregate()
					}
					written := f.get(role).GetResourceVersion()
					for range 3 {
						f.eventually("the cache sees the rules", func() bool {
							live, err := f.c.Get(f.ctx, RefOf(role))
							return err == nil && live.GetResourceVersion() == written
						})
						assert.Equal(t, Unchanged, f.mustApply(set).Objects[0].Action)
					}
					p, err := f.e.Plan(f.ctx, f.c, set, f.inv, ApplyOptions{})
					require.NoError(t, err)
					assert.Empty(t, p.Items)
					live := f.get(role)
					assert.Equal(t, written, live.GetResourceVersion(), "nothing is written any more")
					assert.Equal(t, []any{"pods"}, nested(live, "rules").([]any)[0].(map[string]any)["resources"])
					assert.Equal(t, aggregator, latestManager(live, pathOfRules, ""))
				})
			}
		}
	}
}

var pathOfRules = fieldpath.MakePathOrDie("rules")

// TestApplyOutputOfKubectlGet: the output of kubectl get can be applied as it is.
func TestApplyOutputOfKubectlGet(t *testing.T) {
	f := newFixture(t)
	objects := []*unstructured.Unstructured{f.configMap("c", "x"), f.deployment("d", 1), f.object(`{apiVersion: v1, kind: Namespace, metadata: {name: NS-n}}`),
		f.object(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: p, namespace: NS}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)}
	var got []*unstructured.Unstructured
	for _, o := range objects {
		got = append(got, f.create(o))
	}
	for _, o := range objects[:2] {
		require.NoError(t, f.resource(o).Delete(f.ctx, o.GetName(), metav1.DeleteOptions{}))
	}
	got[1].SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": "3"})
	set := f.set(got...)
	set.Force = false
	f.mustApply(set)
	assert.NotContains(t, f.get(objects[1]).GetAnnotations(), "deployment.kubernetes.io/revision")
	assert.NotEqual(t, got[0].GetUID(), f.get(objects[0]).GetUID(), "it was made anew")
	assert.Equal(t, len(objects), f.mustApply(set).Count(Unchanged))
}
