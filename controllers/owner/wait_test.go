package owner

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestReplicasMissing(t *testing.T) {
	type fields = map[string]any
	for name, c := range map[string]struct {
		kind         string
		spec, status fields
		want         string
	}{
		"done":                      {"Deployment", fields{"replicas": int64(2)}, fields{"replicas": int64(2), "updatedReplicas": int64(2)}, ""},
		"default of one":            {"Deployment", fields{}, fields{"replicas": int64(1), "updatedReplicas": int64(1)}, ""},
		"none wanted":               {"Deployment", fields{"replicas": int64(0)}, fields{}, ""},
		"none updated yet":          {"Deployment", fields{"replicas": int64(1)}, fields{"replicas": int64(1)}, "DeploymentProgressing: 0 of 1 replicas are up to date, 1 old ones are there"},
		"an old one is still there": {"Deployment", fields{"replicas": int64(1)}, fields{"replicas": int64(2), "updatedReplicas": int64(1)}, "DeploymentProgressing: 1 of 1 replicas are up to date, 1 old ones are there"},
		"another kind":              {"StatefulSet", fields{"replicas": int64(1)}, fields{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"kind": c.kind, "spec": c.spec, "status": c.status}}
			assert.Equal(t, c.want, replicasMissing(obj))
		})
	}
	assert.Empty(t, replicasMissing(nil))
}
