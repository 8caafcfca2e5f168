// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
	"github.com/pergola-dev/pergola/render"
)

// bundlePlace returns a bundle with objects from YAML documents.
func bundlePlace(t *testing.T, cluster, bundle string, objects ...string) ClusterBundle {
	t.Helper()
	p := ClusterBundle{Cluster: cluster, Bundle: render.Bundle{Name: bundle, Component: "garden/" + bundle, Owner: render.Owner{Kind: "garden", Name: "local"}}}
	for _, text := range objects {
		p.Bundle.Objects = append(p.Bundle.Objects, render.Object{Unstructured: object(t, text), Origin: render.Origin{File: bundle + ".yaml", Line: 3}})
	}
	return p
}

const configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: x}}"

const crd = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ws.a.b}}"

func TestBundles(t *testing.T) {
	changed := "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}, data: {a: z}}"
	hashed := func(name, value string) string {
		return "{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: " + name + ", namespace: ns}, data: {a: " + value + "}}"
	}
	ignored := func(annotation, value string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {resources.gardener.cloud/" + annotation + "}}, data: {a: " + value + "}}"
	}
	kept := func(p ClusterBundle) ClusterBundle {
		p.Bundle.Delivery.KeepObjects = true
		return p
	}
	for name, c := range map[string]struct {
		from, to  []ClusterBundle
		want      map[string]change.Action
		unchanged int
	}{
		"nothing":        {nil, nil, map[string]change.Action{}, 0},
		"unchanged":      {[]ClusterBundle{bundlePlace(t, "r", "b", configMap)}, []ClusterBundle{bundlePlace(t, "r", "b", configMap)}, map[string]change.Action{}, 1},
		"create":         {nil, []ClusterBundle{bundlePlace(t, "r", "b", configMap)}, map[string]change.Action{"r b ConfigMap ns/c": change.Create}, 0},
		"change":         {[]ClusterBundle{bundlePlace(t, "r", "b", configMap)}, []ClusterBundle{bundlePlace(t, "r", "b", changed)}, map[string]change.Action{"r b ConfigMap ns/c": change.Change}, 0},
		"delete":         {[]ClusterBundle{bundlePlace(t, "r", "b", configMap)}, nil, map[string]change.Action{"r b ConfigMap ns/c": change.Delete}, 0},
		"other bundle":   {[]ClusterBundle{bundlePlace(t, "r", "b", configMap)}, []ClusterBundle{bundlePlace(t, "r", "b2", configMap)}, map[string]change.Action{}, 1},
		"other cluster":  {[]ClusterBundle{bundlePlace(t, "r", "b", configMap)}, []ClusterBundle{bundlePlace(t, "s", "b", configMap)}, map[string]change.Action{"r b ConfigMap ns/c": change.Delete, "s b ConfigMap ns/c": change.Create}, 0},
		"moves, changes": {[]ClusterBundle{bundlePlace(t, "r", "b", configMap)}, []ClusterBundle{bundlePlace(t, "r", "b2", changed)}, map[string]change.Action{"r b2 ConfigMap ns/c": change.Change}, 0},
		"keepObjects":    {[]ClusterBundle{kept(bundlePlace(t, "r", "b", configMap))}, nil, map[string]change.Action{"r b ConfigMap ns/c": change.Keep}, 0},
		"keep-object": {[]ClusterBundle{bundlePlace(t, "r", "b", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {resources.gardener.cloud/keep-object: 'true'}}}")}, nil,
			map[string]change.Action{"r b ConfigMap c": change.Keep}, 0},
		"mode Ignore": {[]ClusterBundle{bundlePlace(t, "r", "b", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {resources.gardener.cloud/mode: Ignore}}}")}, nil,
			map[string]change.Action{"r b ConfigMap c": change.Keep}, 0},
		"ignore": {[]ClusterBundle{bundlePlace(t, "r", "b", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, annotations: {resources.gardener.cloud/ignore: 'true'}}}")}, nil,
			map[string]change.Action{"r b ConfigMap c": change.Keep}, 0},
		"ignored from now on":          {[]ClusterBundle{bundlePlace(t, "r", "b", configMap)}, []ClusterBundle{bundlePlace(t, "r", "b", ignored("mode: Ignore", "z"))}, map[string]change.Action{"r b ConfigMap ns/c": change.Keep}, 0},
		"hands off from now on":        {[]ClusterBundle{bundlePlace(t, "r", "b", configMap)}, []ClusterBundle{bundlePlace(t, "r", "b", ignored("ignore: 'true'", "z"))}, map[string]change.Action{"r b ConfigMap ns/c": change.Keep}, 0},
		"ignored, changes":             {[]ClusterBundle{bundlePlace(t, "r", "b", ignored("mode: Ignore", "x"))}, []ClusterBundle{bundlePlace(t, "r", "b", ignored("mode: Ignore", "z"))}, map[string]change.Action{}, 1},
		"new, ignored":                 {nil, []ClusterBundle{bundlePlace(t, "r", "b", ignored("mode: Ignore", "x"))}, map[string]change.Action{}, 1},
		"ignored no longer":            {[]ClusterBundle{bundlePlace(t, "r", "b", ignored("mode: Ignore", "x"))}, []ClusterBundle{bundlePlace(t, "r", "b", configMap)}, map[string]change.Action{"r b ConfigMap ns/c": change.Change}, 0},
		"definition leaves":            {[]ClusterBundle{bundlePlace(t, "r", "b", crd, configMap)}, []ClusterBundle{bundlePlace(t, "r", "b", configMap)}, map[string]change.Action{"r b CustomResourceDefinition ws.a.b": change.Keep}, 1},
		"definition goes with the set": {[]ClusterBundle{bundlePlace(t, "r", "b", crd)}, []ClusterBundle{bundlePlace(t, "r", "c", configMap)}, map[string]change.Action{"r b CustomResourceDefinition ws.a.b": change.Delete, "r c ConfigMap ns/c": change.Create}, 0},
		"version moves": {[]ClusterBundle{bundlePlace(t, "r", "b", "{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: j}}")},
			[]ClusterBundle{bundlePlace(t, "r", "b", "{apiVersion: batch/v1, kind: CronJob, metadata: {name: j}}")}, map[string]change.Action{"r b CronJob j": change.Change}, 0},
		"hashed name": {[]ClusterBundle{bundlePlace(t, "r", "b", hashed("c-0123abcd", "x"))}, []ClusterBundle{bundlePlace(t, "r", "b", hashed("c-4567cdef", "z"))},
			map[string]change.Action{"r b ConfigMap ns/c-4567cdef": change.Change}, 0},
		"hashed, of another": {[]ClusterBundle{bundlePlace(t, "r", "b", hashed("c-0123abcd", "x"))}, []ClusterBundle{bundlePlace(t, "r", "b", hashed("d-4567cdef", "z"))},
			map[string]change.Action{"r b ConfigMap ns/c-0123abcd": change.Delete, "r b ConfigMap ns/d-4567cdef": change.Create}, 0},
		"two hashed become one": {[]ClusterBundle{bundlePlace(t, "r", "b", hashed("c-0123abcd", "x"), hashed("c-11111111", "w"))}, []ClusterBundle{bundlePlace(t, "r", "b", hashed("c-4567cdef", "z"))},
			map[string]change.Action{"r b ConfigMap ns/c-4567cdef": change.Change, "r b ConfigMap ns/c-11111111": change.Delete}, 0},
		"one hashed becomes two": {[]ClusterBundle{bundlePlace(t, "r", "b", hashed("c-0123abcd", "x"))}, []ClusterBundle{bundlePlace(t, "r", "b", hashed("c-4567cdef", "z"), hashed("c-55555555", "w"))},
			map[string]change.Action{"r b ConfigMap ns/c-4567cdef": change.Change, "r b ConfigMap ns/c-55555555": change.Create}, 0},
		"immutable in place": {[]ClusterBundle{bundlePlace(t, "r", "b", hashed("c", "x"))}, []ClusterBundle{bundlePlace(t, "r", "b", hashed("c", "z"))}, map[string]change.Action{"r b ConfigMap ns/c": change.Recreate}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 5 { // map order must not matter
				p := CompareBundles(c.from, c.to)
				got := map[string]change.Action{}
				for _, item := range p.Items {
					got[item.Cluster+" "+item.Bundle+" "+item.Object.String()] = item.Action
				}
				assert.Equal(t, c.want, got)
				assert.Equal(t, c.unchanged, p.Unchanged)
				assert.Equal(t, len(c.want) == 0, p.IsEmpty())
			}
		})
	}
	p := CompareBundles([]ClusterBundle{bundlePlace(t, "r", "b", "{apiVersion: a.example.com/v1, kind: W, metadata: {name: w}}")},
		[]ClusterBundle{bundlePlace(t, "r", "b", "{apiVersion: b.example.com/v1, kind: W, metadata: {name: w}}")})
	assert.Equal(t, change.Summary{Create: 1, Delete: 1}, p.Summary, "the same kind of another group is another object")
	item := CompareBundles(nil, []ClusterBundle{bundlePlace(t, "r", "b", configMap)}).Items[0]
	assert.Equal(t, change.Item{Cluster: "r", Owner: "garden local", Component: "garden/b", Bundle: "b", Action: change.Create, Origin: "b.yaml:3",
		Object: change.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "c"}}, item)
}

func TestChangeOrRecreate(t *testing.T) {
	recreate := "annotations: {resources.gardener.cloud/delete-on-invalid-update: 'true'}"
	for name, c := range map[string]struct {
		old, new string
		want     change.Action
		reason   string
	}{
		"mutable":               {"{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}", change.Change, ""},
		"selector":              {"{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}}}", "{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: c}}}}", change.Fail, "spec.selector"},
		"of another group":      {"{apiVersion: x.example.com/v1, kind: Deployment, spec: {selector: a}}", "{apiVersion: x.example.com/v1, kind: Deployment, spec: {selector: b}}", change.Change, ""},
		"allowed by the old":    {"{apiVersion: apps/v1, kind: Deployment, metadata: {" + recreate + "}, spec: {selector: {a: b}}}", "{apiVersion: apps/v1, kind: Deployment, metadata: {" + recreate + "}, spec: {selector: {a: c}}}", change.Recreate, "spec.selector"},
		"allowed by the new":    {"{apiVersion: apps/v1, kind: Deployment, spec: {selector: {a: b}}}", "{apiVersion: apps/v1, kind: Deployment, metadata: {" + recreate + "}, spec: {selector: {a: c}}}", change.Recreate, "spec.selector"},
		"never recreated":       {"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {" + recreate + "}, spec: {storageClassName: a}}", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {" + recreate + "}, spec: {storageClassName: b}}", change.Fail, "never recreated"},
		"claim grows":           {"{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 1Gi}}}}", "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {resources: {requests: {storage: 2Gi}}}}", change.Change, ""},
		"claim templates":       {"{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [{metadata: {name: a}}]}}", "{apiVersion: apps/v1, kind: StatefulSet, spec: {volumeClaimTemplates: [{metadata: {name: b}}]}}", change.Change, "spec.volumeClaimTemplates"},
		"roleRef":               {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {name: a}}", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {name: b}}", change.Fail, "roleRef"},
		"subjects":              {"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{name: a}]}", "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, subjects: [{name: b}]}", change.Change, ""},
		"frozen":                {"{apiVersion: v1, kind: ConfigMap, immutable: true, data: {a: b}}", "{apiVersion: v1, kind: ConfigMap, immutable: true, data: {a: c}}", change.Recreate, "data.a"},
		"frozen, label":         {"{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {labels: {a: b}}}", "{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {labels: {a: c}}}", change.Change, ""},
		"thawed":                {"{apiVersion: v1, kind: Secret, immutable: true}", "{apiVersion: v1, kind: Secret}", change.Recreate, "immutable"},
		"immutable elsewhere":   {"{apiVersion: example.com/v1, kind: W, immutable: true, data: a}", "{apiVersion: example.com/v1, kind: W, immutable: true, data: b}", change.Change, ""},
		"frozen under new name": {"{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: c-01234567}, data: {a: b}}", "{apiVersion: v1, kind: ConfigMap, immutable: true, metadata: {name: c-89abcdef}, data: {a: c}}", change.Change, "hash"},
		"similar name":          {"{apiVersion: apps/v1, kind: Deployment, spec: {selectorX: a}}", "{apiVersion: apps/v1, kind: Deployment, spec: {selectorX: b}}", change.Change, ""},
		"region of a shoot":     {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {region: a}}", "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {region: b}}", change.Fail, "spec.region"},
		"shoot is bound":        {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {region: a}}", "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {region: a, seedName: b, dns: {domain: c}, networking: {pods: d}}}", change.Change, ""},
		"networks of a shoot":   {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {networking: {pods: 10.0.0.0/8}}}", "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {networking: {pods: 11.0.0.0/8}}}", change.Fail, "spec.networking.pods"},
		"dual stack":            {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {networking: {ipFamilies: [IPv4]}}}", "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {networking: {ipFamilies: [IPv4, IPv6]}}}", change.Change, ""},
		"another family":        {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {networking: {ipFamilies: [IPv4]}}}", "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {networking: {ipFamilies: [IPv6]}}}", change.Fail, "spec.networking.ipFamilies"},
		"upgrade":               {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {kubernetes: {version: 1.33.9}}}", "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {kubernetes: {version: 1.34.1}}}", change.Change, ""},
		"upgrade by two":        {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {kubernetes: {version: 1.33.9}}}", "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {kubernetes: {version: 1.35.1}}}", change.Fail, "spec.kubernetes.version"},
		"downgrade":             {"{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {kubernetes: {version: 1.33.9}}}", "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot, spec: {kubernetes: {version: 1.33.8}}}", change.Fail, "spec.kubernetes.version"},
		"seed without backup":   {"{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, spec: {backup: {provider: a}}}", "{apiVersion: core.gardener.cloud/v1beta1, kind: Seed, spec: {}}", change.Fail, "spec.backup"},
		"first domain":          {"{apiVersion: operator.gardener.cloud/v1alpha1, kind: Garden, spec: {virtualCluster: {dns: {domains: [{name: a}]}}}}", "{apiVersion: operator.gardener.cloud/v1alpha1, kind: Garden, spec: {virtualCluster: {dns: {domains: [{name: b}, {name: a}]}}}}", change.Fail, "spec.virtualCluster.dns.domains[0]"},
		"more domains":          {"{apiVersion: operator.gardener.cloud/v1alpha1, kind: Garden, spec: {virtualCluster: {dns: {domains: [{name: a}]}}}}", "{apiVersion: operator.gardener.cloud/v1alpha1, kind: Garden, spec: {virtualCluster: {dns: {domains: [{name: a}, {name: b}]}}}}", change.Change, ""},
		"class of an etcd":      {"{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {storageClass: a}}", "{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {}}", change.Fail, "spec.storageClass"},
		"larger etcd":           {"{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {storageCapacity: 1Gi, replicas: 1}}", "{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {storageCapacity: 2Gi, replicas: 3}}", change.Change, ""},
		"smaller etcd":          {"{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {replicas: 3}}", "{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {replicas: 1}}", change.Fail, "spec.replicas"},
		"sleeping etcd":         {"{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {replicas: 3}}", "{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {replicas: 0}}", change.Change, ""},
		"purpose of an OSC":     {"{apiVersion: extensions.gardener.cloud/v1alpha1, kind: OperatingSystemConfig, spec: {purpose: a}}", "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: OperatingSystemConfig, spec: {purpose: b}}", change.Fail, "spec.purpose"},
		"request":               {"{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, spec: {signerName: a}}", "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, spec: {signerName: b}}", change.Change, "keeps its value"},
		"scope of a CRD":        {"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {scope: Cluster}}", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {scope: Namespaced}}", change.Fail, "never recreated"},
	} {
		t.Run(name, func(t *testing.T) {
			old, new := object(t, c.old), object(t, c.new)
			action, reason := objectChange{old: old.Object, new: new.Object, fields: redact.Compare(old.Object, new.Object)}.predictAction(old, new)
			assert.Equal(t, c.want, action)
			assert.Contains(t, reason, c.reason)
			assert.Equal(t, c.reason == "", reason == "")
		})
	}
}

func TestConsequences(t *testing.T) {
	for name, c := range map[string]struct {
		action   change.Action
		old, new string
		want     []string
	}{
		"pod template":    {change.Change, "{apiVersion: apps/v1, kind: Deployment, spec: {template: {a: 1, b: 1}}}", "{apiVersion: apps/v1, kind: Deployment, spec: {template: {a: 2, b: 2}}}", []string{"rolls its pods"}},
		"on delete":       {change.Change, "{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {a: 1}}}", "{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {a: 2}, updateStrategy: {type: OnDelete}}}", []string{"its pods change when they are deleted"}},
		"scaled to zero":  {change.Change, "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 0}}", []string{"stops all its pods"}},
		"scaled":          {change.Change, "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 1}}", "{apiVersion: apps/v1, kind: Deployment, spec: {replicas: 2}}", nil},
		"label":           {change.Change, "{apiVersion: apps/v1, kind: Deployment}", "{apiVersion: apps/v1, kind: Deployment, metadata: {labels: {a: b}}}", nil},
		"etcd":            {change.Change, "{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {replicas: 1}}", "{apiVersion: druid.gardener.cloud/v1alpha1, kind: Etcd, spec: {replicas: 3}}", []string{"may roll the etcd members"}},
		"worker":          {change.Change, "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, spec: {pools: [{name: p, maximum: 3, machineType: a}]}}", "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, spec: {pools: [{name: p, maximum: 3, machineType: b}]}}", []string{"the nodes of pool p (up to 3) are replaced: machine type a → b"}},
		"worker grows":    {change.Change, "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, spec: {pools: [{name: p, maximum: 1}]}}", "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, spec: {pools: [{name: p, maximum: 2}]}}", nil},
		"service type":    {change.Change, "{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}", "{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}", []string{"changes how it is reached: LoadBalancer"}},
		"version dropped": {change.Change, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v1}, {name: v2}]}}", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {versions: [{name: v2}]}}", []string{"an API version is no longer served: v1"}},
		"namespace goes":  {change.Delete, "{apiVersion: v1, kind: Namespace}", "", []string{"deletes everything in the namespace"}},
		"definition goes": {change.Delete, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}", "", []string{"deletes every object of the kind"}},
		"volume goes":     {change.Delete, "{apiVersion: v1, kind: PersistentVolumeClaim}", "", []string{"loses stored data"}},
		"load balancer":   {change.Delete, "{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}", "", []string{"releases the load balancer address"}},
		"other service":   {change.Delete, "{apiVersion: v1, kind: Service}", "", nil},
		"shoot goes":      {change.Delete, "{apiVersion: core.gardener.cloud/v1beta1, kind: Shoot}", "", []string{"deletes the cluster with everything in it"}},
		"recreated":       {change.Recreate, "{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}", "{apiVersion: v1, kind: Service}", []string{"is deleted and created again", "releases the load balancer address"}},
		"kept":            {change.Keep, "{apiVersion: v1, kind: Namespace}", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			old := object(t, c.old)
			item := change.Item{Action: c.action, Object: change.RefOf(old)}
			if c.new == "" {
				assert.Equal(t, c.want, Consequences(item, old, nil))
				return
			}
			new := object(t, c.new)
			item.Fields = redact.Compare(old.Object, new.Object)
			require.NotEmpty(t, item.Fields)
			assert.Equal(t, c.want, Consequences(item, old, new))
		})
	}
	assert.Equal(t, []string{"deletes everything in the namespace"}, Consequences(change.Item{Action: change.Delete, Object: change.Ref{Kind: "Namespace"}}, nil, nil), "the live object need not be known")
	assert.Nil(t, Consequences(change.Item{Action: change.Delete, Object: change.Ref{Kind: "Service"}}, nil, nil))
}

// TestPreservedFieldsRollNothing: autoscaled fields keep their live values and roll no pods.
func TestPreservedFieldsRollNothing(t *testing.T) {
	workload := func(replicas, cpu, image string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, annotations: {resources.gardener.cloud/preserve-replicas: 'true', resources.gardener.cloud/preserve-resources: 'true'}}, " +
			"spec: {replicas: " + replicas + ", template: {spec: {containers: [{name: a, image: " + image + ", resources: {requests: {cpu: " + cpu + "}}}]}}}}"
	}
	diff := func(new string) change.Item {
		return CompareBundles([]ClusterBundle{bundlePlace(t, "r", "b", workload("3", "1", "a"))}, []ClusterBundle{bundlePlace(t, "r", "b", new)}).Items[0]
	}
	item := diff(workload("0", "2", "a"))
	assert.Empty(t, item.Consequences)
	assert.Len(t, item.Fields, 2, "they are shown")
	assert.Equal(t, "spec.replicas keeps its live value: annotation resources.gardener.cloud/preserve-replicas; "+
		"spec.template.spec.containers[name=a].resources.requests.cpu keeps its live value: annotation resources.gardener.cloud/preserve-resources", item.Reason)
	assert.Equal(t, []string{rollText}, diff(workload("3", "2", "b")).Consequences)
}

// TestReplicasUnderAnAutoscaler: replicas keep the autoscaler's value, and no pod stops.
func TestReplicasUnderAnAutoscaler(t *testing.T) {
	deployment := func(replicas string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {replicas: " + replicas + "}}"
	}
	scaler := func(kind string) string {
		return "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: ns}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: " + kind + ", name: d}}}"
	}
	for name, c := range map[string]struct {
		from, to     []ClusterBundle
		reason       string
		consequences []string
	}{
		"none":           {[]ClusterBundle{bundlePlace(t, "r", "b", deployment("3"))}, []ClusterBundle{bundlePlace(t, "r", "b", deployment("0"))}, "", []string{stopText}},
		"of its bundle":  {[]ClusterBundle{bundlePlace(t, "r", "b", deployment("3"), scaler("Deployment"))}, []ClusterBundle{bundlePlace(t, "r", "b", deployment("2"), scaler("Deployment"))}, "spec.replicas keeps its live value: a HorizontalPodAutoscaler sets it", nil},
		"to none":        {[]ClusterBundle{bundlePlace(t, "r", "b", deployment("3"), scaler("Deployment"))}, []ClusterBundle{bundlePlace(t, "r", "b", deployment("0"), scaler("Deployment"))}, "spec.replicas keeps its live value: a HorizontalPodAutoscaler sets it", nil},
		"from none":      {[]ClusterBundle{bundlePlace(t, "r", "b", deployment("0"), scaler("Deployment"))}, []ClusterBundle{bundlePlace(t, "r", "b", deployment("3"), scaler("Deployment"))}, "", []string{startText}},
		"new":            {[]ClusterBundle{bundlePlace(t, "r", "b", deployment("3"))}, []ClusterBundle{bundlePlace(t, "r", "b", deployment("2")), bundlePlace(t, "r", "c", scaler("Deployment"))}, "spec.replicas keeps its live value: a HorizontalPodAutoscaler sets it", nil},
		"of another":     {[]ClusterBundle{bundlePlace(t, "r", "b", deployment("3"))}, []ClusterBundle{bundlePlace(t, "r", "b", deployment("0"), scaler("StatefulSet"))}, "", []string{stopText}},
		"elsewhere":      {[]ClusterBundle{bundlePlace(t, "r", "b", deployment("3"))}, []ClusterBundle{bundlePlace(t, "r", "b", deployment("0")), bundlePlace(t, "s", "c", scaler("Deployment"))}, "", []string{stopText}},
		"gone with this": {[]ClusterBundle{bundlePlace(t, "r", "b", deployment("3"), scaler("Deployment"))}, []ClusterBundle{bundlePlace(t, "r", "b", deployment("0"))}, "", []string{stopText}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, item := range CompareBundles(c.from, c.to).Items {
				if item.Object.Kind == "Deployment" {
					assert.Equal(t, c.reason, item.Reason)
					assert.Equal(t, c.consequences, item.Consequences)
				}
			}
		})
	}
}
