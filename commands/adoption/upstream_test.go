// SPDX-License-Identifier: Apache-2.0

package adoption

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/hack/corpus"
)

// TestObjectsOfUpstream checks, stops and takes over the objects that gardener-operator and
// gardener-resource-manager wrote for upstream's example Garden (shared/corpus).
func TestObjectsOfUpstream(t *testing.T) {
	dir := corpus.Dir(t)
	u := newUpstream(t, dir)
	u.deploy(dir)
	for _, step := range []struct {
		name string
		test func(*upstream)
	}{
		{"what a check says differs is listed as deliberate", testDifferencesAreDeliberate},
		{"what has to stop is gardener-operator", testStopped},
		{"gardener-operator can be started again", testStartedAgain},
		{"an apply restarts what the check said, and nothing is lost", testUpstreamTakenOver},
	} {
		if !t.Run(step.name, func(t *testing.T) { on := *u; on.stage = u.withT(t); step.test(&on) }) {
			t.Errorf("what follows builds on %q", step.name)
		}
	}
}

// restartedOfUpstream are workloads whose pods a takeover replaces: their configuration has other
// settings, comments or a script of ours. The deliberate differences give the reasons.
var restartedOfUpstream = []string{
	"Deployment garden/etcd-druid", "Deployment garden/gardener-resource-manager", "Deployment garden/kube-state-metrics-runtime", "Deployment garden/plutono",
	"Deployment garden/virtual-garden-gardener-resource-manager", "Deployment garden/virtual-garden-kube-apiserver", "Deployment istio-system/istiod",
	"Deployment virtual-garden-istio-ingress/istio-ingressgateway", "StatefulSet garden/vali",
}

func testDifferencesAreDeliberate(u *upstream) {
	listed := readDeliberateDifferences(u.T, u.world.Root)
	report := u.check()
	assert.Empty(u, report.Problems)
	var unlisted []string
	for _, f := range report.Findings {
		if f.Level == LevelNoAction || f.Area == AreaControllers || isUnregistered(f) {
			continue
		}
		if f.Area == AreaSecrets && f.Level == LevelChanges {
			// Upstream has a token instead of this Secret, and no certificate.
			f.Objects = slices.DeleteFunc(f.Objects, func(object string) bool {
				return strings.HasPrefix(object, "Secret garden/gardener-internal-") && listed.hasDifferences("Secret/garden/gardener-internal")
			})
			if len(f.Objects) == 0 {
				continue
			}
		}
		if f.Area != AreaObjects || f.Level == LevelBlocks {
			unlisted = append(unlisted, fmt.Sprintf("%s %s %v: %s", f.Level, f.Area, f.Objects, f.Text))
			continue
		}
		if len(f.Fields) == 0 {
			for _, object := range f.Objects {
				// Upstream's names of webhook configurations have a namespace.
				if key, _ := reportedObjectKey(object); !listed.hasDifferences(key) && !listed.hasDifferences(strings.Replace(key, "WebhookConfiguration//", "WebhookConfiguration/garden/", 1)) {
					unlisted = append(unlisted, fmt.Sprintf("%s: %s", object, f.Text))
				}
			}
		}
		for _, field := range withoutEmptyFields(f.Fields) {
			object, path := f.Objects[0], field.Path
			if head, rest, several := strings.Cut(path, ": "); several {
				object, path = head, rest
			}
			field.Path = path
			if key, namespace := reportedObjectKey(object); !listed.allows(key, path) && !listed.isReferenceChange(namespace, field) {
				unlisted = append(unlisted, fmt.Sprintf("%s %s: %s: %v -> %v", f.Level, object, path, field.Old, field.New))
			}
		}
	}
	assert.Empty(u, unlisted, "%s", strings.Join(unlisted, "\n"))
	assert.Equal(u, restartedOfUpstream, findingObjects(report.ByLevel(LevelRestarts)))
}

func testStopped(u *upstream) {
	u.stopAll()
	assert.Zero(u, u.replicas("gardener-operator"))
	for _, name := range []string{"gardener-resource-manager", "virtual-garden-gardener-resource-manager", "gardener-controller-manager", "gardener-scheduler"} {
		assert.Positive(u, u.replicas(name), "%s is the same program, and goes on", name)
	}
}

func testStartedAgain(u *upstream) {
	a, _ := u.adopter()
	defer a.Converger.Close()
	started, err := a.Undo(u.context())
	require.NoError(u, err)
	assert.Equal(u, []string{"runtime: Deployment garden/gardener-operator"}, started)
	assert.Equal(u, int64(2), u.replicas("gardener-operator"))
	assert.NotNil(u, u.get(landscape.Runtime, validatingWebhooks, "", "gardener-operator"))
	assert.Nil(u, u.get(landscape.Runtime, configMaps, "garden", recordName))
	for name := range u.recording.secrets {
		list, err := u.api[landscape.Runtime].Resource(secretsResource).Namespace("garden").List(u.context(), metav1.ListOptions{LabelSelector: "managed-by=secrets-manager,name=" + name})
		require.NoError(u, err)
		assert.Len(u, list.Items, map[bool]int{true: 0, false: 1}[name == "shoot-access-gardener-resource-manager-bootstrap"], name)
	}
}

func testUpstreamTakenOver(u *upstream) {
	said := u.check()
	u.stopAll()
	u.assertTakeover(said)
	for _, name := range restartedOfUpstream {
		if name, is := strings.CutPrefix(name, "Deployment garden/"); is {
			assert.Positive(u, u.replicas(name), name)
		}
	}
}
