// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/change"
)

func pod(spec string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: %s}", spec)
}

func widgetManifest(spec string) string {
	return fmt.Sprintf("{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: %s}", spec)
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     []change.Field
	}{
		"same":               {widgetManifest("{a: 1}"), widgetManifest("{a: 1}"), nil},
		"changed":            {widgetManifest("{a: {b: 1}}"), widgetManifest("{a: {b: 2}}"), []change.Field{{Path: "spec.a.b", Old: int64(1), New: int64(2)}}},
		"added":              {widgetManifest("{}"), widgetManifest("{a: x}"), []change.Field{{Path: "spec.a", New: "x"}}},
		"removed":            {widgetManifest("{a: x, b: y}"), widgetManifest("{b: y}"), []change.Field{{Path: "spec.a", Old: "x"}}},
		"odd keys":           {widgetManifest("{a/b: 1, c.d: 1}"), widgetManifest("{a/b: 2, c.d: 2}"), []change.Field{{Path: "spec[a/b]", Old: int64(1), New: int64(2)}, {Path: "spec[c.d]", Old: int64(1), New: int64(2)}}},
		"null is absent":     {widgetManifest("{a: null}"), widgetManifest("{}"), nil},
		"type changes":       {widgetManifest("{a: '1'}"), widgetManifest("{a: 1}"), []change.Field{{Path: "spec.a", Old: "1", New: int64(1)}}},
		"map becomes list":   {widgetManifest("{a: {b: 1}}"), widgetManifest("{a: [1]}"), []change.Field{{Path: "spec.a", Old: map[string]any{"b": int64(1)}, New: []any{int64(1)}}}},
		"whole as fraction":  {widgetManifest("{a: 1.0}"), widgetManifest("{a: 1}"), nil},
		"large integers":     {widgetManifest("{a: 9007199254740993}"), widgetManifest("{a: 9007199254740992}"), []change.Field{{Path: "spec.a", Old: int64(9007199254740993), New: int64(9007199254740992)}}},
		"empty map counts":   {widgetManifest("{a: {}}"), widgetManifest("{}"), []change.Field{{Path: "spec.a", Old: map[string]any{}}}},
		"empty list counts":  {widgetManifest("{}"), widgetManifest("{a: []}"), []change.Field{{Path: "spec.a", New: []any{}}}},
		"emptyDir counts":    {pod("{volumes: [{name: v, emptyDir: {}}]}"), pod("{volumes: [{name: v}]}"), []change.Field{{Path: "spec.volumes[name=v].emptyDir", Old: map[string]any{}}}},
		"empty in a pod":     {pod("{nodeSelector: {}, tolerations: [], containers: [{name: c, resources: {}, env: []}]}"), pod("{containers: [{name: c}]}"), nil},
		"not in a CRD":       {widgetManifest("{resources: {}}"), widgetManifest("{}"), []change.Field{{Path: "spec.resources", Old: map[string]any{}}}},
		"trailing newline":   {widgetManifest(`{a: "x\n"}`), widgetManifest("{a: x}"), []change.Field{{Path: "spec.a", Old: "x\n", New: "x"}}},
		"quantities":         {pod("{containers: [{name: c, resources: {requests: {cpu: 1000m, memory: 1024Mi}}}]}"), pod("{containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]}"), nil},
		"other quantity":     {pod("{containers: [{name: c, resources: {limits: {cpu: 100m}}}]}"), pod("{containers: [{name: c, resources: {limits: {cpu: 1}}}]}"), []change.Field{{Path: "spec.containers[name=c].resources.limits.cpu", Old: "100m", New: int64(1)}}},
		"no quantity there":  {widgetManifest("{a: 1000m}"), widgetManifest("{a: '1'}"), []change.Field{{Path: "spec.a", Old: "1000m", New: "1"}}},
		"item by name":       {pod("{containers: [{name: a, image: x}, {name: b, image: x}]}"), pod("{containers: [{name: a, image: x}, {name: b, image: z}]}"), []change.Field{{Path: "spec.containers[name=b].image", Old: "x", New: "z"}}},
		"item added":         {pod("{containers: [{name: a}]}"), pod("{containers: [{name: b}, {name: a}]}"), []change.Field{{Path: "spec.containers[name=b]", New: map[string]any{"name": "b"}}}},
		"item removed":       {pod("{containers: [{name: a}, {name: b}]}"), pod("{containers: [{name: b}]}"), []change.Field{{Path: "spec.containers[name=a]", Old: map[string]any{"name": "a"}}}},
		"items in new order": {pod("{containers: [{name: a}, {name: b}]}"), pod("{containers: [{name: b}, {name: a}]}"), []change.Field{{Path: "spec.containers (order)", Old: []any{"name=a", "name=b"}, New: []any{"name=b", "name=a"}}}},
		"order and content": {pod("{containers: [{name: a, image: x}, {name: b}]}"), pod("{containers: [{name: b}, {name: a}]}"),
			[]change.Field{{Path: "spec.containers[name=a].image", Old: "x"}, {Path: "spec.containers (order)", Old: []any{"name=a", "name=b"}, New: []any{"name=b", "name=a"}}}},
		"one port, two protocols": {pod("{ports: [{port: 53, protocol: UDP, to: 1}, {port: 53, to: 1}]}"), pod("{ports: [{port: 53, protocol: UDP, to: 2}, {port: 53, to: 1}]}"),
			[]change.Field{{Path: "spec.ports[port=53,protocol=UDP].to", Old: int64(1), New: int64(2)}}},
		"items without names": {widgetManifest("{rules: [{verbs: [get]}, {verbs: [list]}]}"), widgetManifest("{rules: [{verbs: [get]}, {verbs: [watch]}]}"),
			[]change.Field{{Path: "spec.rules[1].verbs", Old: []any{"list"}, New: []any{"watch"}}}},
		"fewer items without names": {widgetManifest("{rules: [{verbs: [get]}, {verbs: [list]}]}"), widgetManifest("{rules: [{verbs: [list]}]}"),
			[]change.Field{{Path: "spec.rules", Old: []any{map[string]any{"verbs": []any{"get"}}, map[string]any{"verbs": []any{"list"}}}, New: []any{map[string]any{"verbs": []any{"list"}}}}}},
		"plain list": {widgetManifest("{args: [a, b]}"), widgetManifest("{args: [b, a]}"), []change.Field{{Path: "spec.args", Old: []any{"a", "b"}, New: []any{"b", "a"}}}},
		"names that repeat": {widgetManifest("{l: [{name: a, v: 1}, {name: a, v: 2}]}"), widgetManifest("{l: [{name: a, v: 1}, {name: a, v: 3}]}"),
			[]change.Field{{Path: "spec.l[1].v", Old: int64(2), New: int64(3)}}},
		"server's fields": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, uid: x, resourceVersion: '1', generation: 1, managedFields: [], creationTimestamp: '2026-01-01T00:00:00Z'}, status: {a: b}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, labels: {}, annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}'}}}", nil},
		"version": {"{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: c}}", "{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}}",
			[]change.Field{{Path: "apiVersion", Old: "batch/v1beta1", New: "batch/v1"}}},
		"data may be called status": {widgetManifest("{status: 1}"), widgetManifest("{status: 2}"), []change.Field{{Path: "spec.status", Old: int64(1), New: int64(2)}}},
	} {
		t.Run(name, func(t *testing.T) {
			old, new := object(t, c.old), object(t, c.new)
			before := old.DeepCopy()
			assert.Equal(t, c.want, Compare(old.Object, new.Object))
			assert.Equal(t, before, old, "the input stays as it is")
			assert.Len(t, Compare(new.Object, old.Object), len(c.want), "as many the other way round")
		})
	}
}

func TestCompareWithNothing(t *testing.T) {
	o := object(t, widgetManifest("{a: x}"))
	for _, fields := range [][]change.Field{Compare(nil, o.Object), Compare(o.Object, nil)} {
		var paths []string
		for _, f := range fields {
			paths = append(paths, f.Path)
		}
		assert.Equal(t, []string{"apiVersion", "kind", "metadata", "spec"}, paths)
	}
}
