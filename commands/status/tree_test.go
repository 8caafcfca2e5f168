// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	"github.com/pergola-dev/pergola/apply"
	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/hack/apiserver"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/plan"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func timeBefore(d time.Duration) *time.Time {
	at := noon.Add(-d)
	return &at
}

func succeeded(d time.Duration) *gardencorev1beta1.LastOperation {
	return &gardencorev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", Progress: 100, LastUpdateTime: metav1.NewTime(noon.Add(-d))}
}

func exampleStatus() landscape.Status {
	return landscape.Status{Landscape: "local", At: noon, Owners: []landscape.OwnerStatus{
		{
			Kind: "Garden", Name: "local", Cluster: "runtime", Ready: true, LastOperation: succeeded(time.Minute), HealthCheckedAt: timeBefore(12 * time.Second), Missing: landscape.OwnerMissing{Reconciler: true},
			Rotations:  []string{"rotation of certificateAuthorities: Prepared; when all clients have switched, request rotate-ca-complete"},
			Conditions: []gardencorev1beta1.Condition{{Type: "RuntimeComponentsHealthy", Status: "True", Message: "fine"}, {Type: "VirtualComponentsHealthy", Status: "Unknown", Message: "who\nknows"}},
			Bundles: []owner.BundleState{
				{Bundle: "vpa", Cluster: "runtime", Objects: 35, State: owner.StateHealthy},
				{Bundle: "etcd-druid", Cluster: "runtime", Objects: 1, State: owner.StateUnhealthy, Message: "no pods"},
			},
		},
		{
			Kind: "Seed", Name: "one", Cluster: "one", Missing: landscape.OwnerMissing{Reconciler: true},
			LastOperation: &gardencorev1beta1.LastOperation{Type: "Create", State: "Error", Progress: 40, Description: "no\nluck", LastUpdateTime: metav1.NewTime(noon.Add(time.Second))},
			Conditions:    []gardencorev1beta1.Condition{{Type: "SeedSystemComponentsHealthy", Status: "False", Message: "broken"}},
			Shoots: []landscape.OwnerStatus{
				{Kind: "Shoot", Namespace: "a", Name: "b", Cluster: "one", Conditions: []gardencorev1beta1.Condition{{Type: "ControlPlaneHealthy", Status: "Progressing", Message: "soon"}}, Missing: landscape.OwnerMissing{Reconciler: true}},
				{Kind: "Shoot", Namespace: "a", Name: "c", Cluster: "one", Unreachable: "virtual", Error: "does not answer", Missing: landscape.OwnerMissing{Reconciler: true, State: true}},
				{Kind: "Shoot", Namespace: "a", Name: "d", Cluster: "one", Error: "not allowed", Missing: landscape.OwnerMissing{Reconciler: true, State: true}},
			},
		},
		{Kind: "-", Name: "-", Error: "seed two: no access"},
	}, Undeclared: []landscape.UndeclaredObject{
		{Cluster: "virtual", Object: apply.Ref{Kind: "Shoot", Namespace: "a", Name: "e"}, HoldReason: "its file no longer exists"},
		{Cluster: "virtual", Object: apply.Ref{Kind: "Quota", Namespace: "a", Name: "f"}},
	}}
}

func printedStatus(s landscape.Status) string {
	var b bytes.Buffer
	Print(&b, s, false)
	return b.String()
}

func TestPrint(t *testing.T) {
	assert.Equal(t, `Landscape local: not ready
├─ Garden local on runtime: Ready as of 12s ago, Reconcile Succeeded (100%) 60s ago
│  ├─ … rotation of certificateAuthorities: Prepared; when all clients have switched, request rotate-ca-complete
│  ├─ ✓ RuntimeComponentsHealthy         fine
│  ├─ ? VirtualComponentsHealthy         who knows
│  └─ bundles: 1 healthy; 1 applied, not healthy
│     ├─ ✓ vpa                                   35 objects on runtime  healthy
│     └─ ✗ etcd-druid                             1 object  on runtime  applied, not healthy: no pods
├─ Seed one on one: not ready, Create Error (40%) 0s ago: no luck
│  ├─ ✗ SeedSystemComponentsHealthy      broken
│  ├─ Shoot a/b on one: not ready, never reconciled
│  │  └─ … ControlPlaneHealthy              soon
│  ├─ Shoot a/c on one: unknown, because cluster virtual cannot be reached
│  │  └─ ✗ does not answer
│  └─ Shoot a/d on one: unknown
│     └─ ✗ not allowed
├─ ✗ seed two: no access
└─ … no longer in Git
   ├─ Shoot a/e on virtual: held: its file no longer exists
   └─ Quota a/f on virtual: the next apply deletes it, if the deletion gate allows it
`+"No process reconciles it: conditions are from the last run. `pergola status --live` judges now, `pergola apply --watch` keeps them up to date.\n", printedStatus(exampleStatus()))
}

// TestStatusOfClustersThatDoNotAnswer: the state of an owner is unknown, not "never reconciled", if
// its cluster does not answer.
func TestStatusOfClustersThatDoNotAnswer(t *testing.T) {
	l, _, err := landscapes.Load(t.Context(), "../../landscapes/local", landscapes.Options{})
	require.NoError(t, err)
	configs := map[string]*rest.Config{}
	for _, name := range []string{landscape.Runtime, landscape.Virtual, "local"} {
		configs[name] = &rest.Config{Host: "https://127.0.0.1:1"}
	}
	c, err := landscape.New(l, landscape.Options{Catalogue: components.FS, Connections: landscape.Connections{Configs: configs}, Clock: clocktesting.NewFakeClock(noon)})
	require.NoError(t, err)
	defer c.Close()
	for _, o := range []landscape.StatusOptions{{}, {Live: true, Components: true}} {
		s := printedStatus(c.Status(testContext(t), o))
		for owner, cluster := range map[string]string{"Garden local on runtime": landscape.Runtime, "Seed local on local": landscape.Virtual, "Shoot garden-local/local on local": landscape.Virtual} {
			assert.Contains(t, s, fmt.Sprintf("%s: unknown, because cluster %s cannot be reached\n", owner, cluster))
			assert.Contains(t, s, fmt.Sprintf("✗ cluster %s at https://127.0.0.1:1 does not answer: dial tcp 127.0.0.1:1: connect: connection refused (check that the API server runs", cluster))
		}
		assert.NotContains(t, s, "never reconciled")
	}
}

// TestStatusBeforeTheFirstApply: an owner that was not applied yet is named as such.
func TestStatusBeforeTheFirstApply(t *testing.T) {
	apiserver.SkipIfUnavailable(t)
	l, _, err := landscapes.Load(t.Context(), "../../landscapes/local", landscapes.Options{})
	require.NoError(t, err)
	c, err := landscape.New(l, landscape.Options{Catalogue: components.FS, Connections: landscape.Connections{Configs: map[string]*rest.Config{landscape.Runtime: server.config, landscape.Virtual: server.config, "local": server.config}}, Clock: clocktesting.NewFakeClock(noon)})
	require.NoError(t, err)
	defer c.Close()
	for _, o := range []landscape.StatusOptions{{}, {Live: true, Components: true}} {
		s := printedStatus(c.Status(testContext(t), o))
		assert.Contains(t, s, "Seed local on local: not ready, never reconciled\n   ├─ ✗ it does not exist on cluster virtual, because its declaration was not applied there yet (run pergola apply)\n")
		assert.Contains(t, s, "Garden local on runtime: not ready, never reconciled\n")
		assert.NotContains(t, s, " : ")
		assert.NotContains(t, s, "NoKind")
	}
}

func TestStatusSaysWhoReconciles(t *testing.T) {
	s := exampleStatus()
	s.Live, s.Owners[0].HealthCheckedAt = true, &noon
	assert.Contains(t, printedStatus(s), "Garden local on runtime: Ready now, ")
	assert.Contains(t, printedStatus(s), "\nConditions are judged now; nothing was written.\n")
	assert.NotContains(t, printedStatus(s), "No process reconciles")

	s = exampleStatus()
	s.Owners[0].Reconciler, s.Owners[0].Missing.Reconciler = "laptop_7", false
	assert.Contains(t, printedStatus(s), "\nlaptop_7 reconciles it.\nNo process reconciles the others: ")
	s.Owners[1].Missing.Reconciler, s.Owners[1].Shoots[0].Missing.Reconciler, s.Owners[1].Shoots[1].Missing.Reconciler, s.Owners[1].Shoots[2].Missing.Reconciler = false, false, false, false
	assert.NotContains(t, printedStatus(s), "No process reconciles", "what is not known, or ourselves, is not claimed")
}

// TestPrintOfInvalidFiles: with invalid files nothing can be judged, so no hint mentions
// --live.
func TestPrintOfInvalidFiles(t *testing.T) {
	s := landscape.Status{Landscape: "local", At: noon, Invalid: "its files are not valid", Owners: []landscape.OwnerStatus{
		{Kind: "Shoot", Namespace: "garden-a", Name: "b", Cluster: "far", Missing: landscape.OwnerMissing{Reconciler: true}},
		{Kind: "-", Name: "-", Error: "seed far: no access to cluster far"},
	}}
	assert.Equal(t, `Landscape local: not ready
  ✗ its files are not valid
├─ Shoot garden-a/b on far: not ready, never reconciled
└─ ✗ seed far: no access to cluster far
Owners without a reconciler here have the conditions of the last run.
`, printedStatus(s))
}

func TestPrintOfHandedOverFields(t *testing.T) {
	field := change.HandedOver{Cluster: "virtual", Object: change.Ref{Kind: "Shoot", Namespace: "a", Name: "b"}, Path: "spec.seedName", Live: "one", Manager: "gardener-scheduler", Reason: "it is bound"}
	s := landscape.Status{Landscape: "local", At: noon, Live: true, HandedOver: []change.HandedOver{field}}
	assert.Equal(t, "Landscape local: not ready\n└─ = handed over to controllers, whose values stay\n   └─ "+plan.HandedOverText(field)+"\nConditions are judged now; nothing was written.\n", printedStatus(s))
}
