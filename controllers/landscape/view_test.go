package landscape

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
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/owner"
	"github.com/pergola-dev/pergola/landscapes"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) *time.Time {
	at := noon.Add(-d)
	return &at
}

func succeeded(d time.Duration) *gardencorev1beta1.LastOperation {
	return &gardencorev1beta1.LastOperation{Type: "Reconcile", State: "Succeeded", Progress: 100, LastUpdateTime: metav1.NewTime(noon.Add(-d))}
}

func example() Status {
	return Status{Landscape: "local", At: noon, Owners: []OwnerStatus{
		{
			Kind: "Garden", Name: "local", Cluster: "runtime", Ready: true, LastOperation: succeeded(time.Minute), JudgedAt: before(12 * time.Second), unkept: true,
			Rotations:  []string{"rotation of certificateAuthorities: Prepared; when all clients have changed over, ask for rotate-ca-complete"},
			Conditions: []gardencorev1beta1.Condition{{Type: "RuntimeComponentsHealthy", Status: "True", Message: "fine"}, {Type: "VirtualComponentsHealthy", Status: "Unknown", Message: "who\nknows"}},
			Bundles: []owner.BundleState{
				{Bundle: "vpa", Cluster: "runtime", Objects: 35, State: owner.StateHealthy},
				{Bundle: "etcd-druid", Cluster: "runtime", Objects: 1, State: owner.StateUnhealthy, Message: "no pods"},
			},
		},
		{
			Kind: "Seed", Name: "one", Cluster: "one", unkept: true,
			LastOperation: &gardencorev1beta1.LastOperation{Type: "Create", State: "Error", Progress: 40, Description: "no\nluck", LastUpdateTime: metav1.NewTime(noon.Add(time.Second))},
			Conditions:    []gardencorev1beta1.Condition{{Type: "SeedSystemComponentsHealthy", Status: "False", Message: "broken"}},
			Shoots: []OwnerStatus{
				{Kind: "Shoot", Namespace: "a", Name: "b", Cluster: "one", Conditions: []gardencorev1beta1.Condition{{Type: "ControlPlaneHealthy", Status: "Progressing", Message: "soon"}}, unkept: true},
				{Kind: "Shoot", Namespace: "a", Name: "c", Cluster: "one", Unreachable: "virtual", Error: "does not answer", unkept: true, unread: true},
				{Kind: "Shoot", Namespace: "a", Name: "d", Cluster: "one", Error: "not allowed", unkept: true, unread: true},
			},
		},
		{Kind: "-", Name: "-", Error: "seed two: no access"},
	}, Undeclared: []Undeclared{
		{Cluster: "virtual", Object: apply.Ref{Kind: "Shoot", Namespace: "a", Name: "e"}, Held: "its file is gone"},
		{Cluster: "virtual", Object: apply.Ref{Kind: "Quota", Namespace: "a", Name: "f"}},
	}}
}

func text(s Status) string {
	var b bytes.Buffer
	PrintStatus(&b, s, false)
	return b.String()
}

func TestPrintStatus(t *testing.T) {
	assert.Equal(t, `Landscape local: not ready
├─ Garden local on runtime: Ready as of 12s ago, Reconcile Succeeded (100%) 60s ago
│  ├─ … rotation of certificateAuthorities: Prepared; when all clients have changed over, ask for rotate-ca-complete
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
└─ … not in Git any more
   ├─ Shoot a/e on virtual: kept: its file is gone
   └─ Quota a/f on virtual: the next apply deletes it, if the deletion gate lets it
`+"Nobody reconciles it: conditions are those of the last run. `pergola status --live` judges now, `pergola apply --watch` keeps them up to date.\n", text(example()))
}

// Whose cluster does not answer is not "never reconciled": nobody knows.
func TestStatusOfClustersThatDoNotAnswer(t *testing.T) {
	l, _, err := landscapes.Load(t.Context(), "../../landscapes/local", landscapes.Options{})
	require.NoError(t, err)
	configs := map[string]*rest.Config{}
	for _, name := range []string{Runtime, Virtual, "local"} {
		configs[name] = &rest.Config{Host: "https://127.0.0.1:1"}
	}
	c, err := New(l, Options{Catalogue: components.FS, Connect: Connections{Configs: configs}, Clock: clocktesting.NewFakeClock(noon)})
	require.NoError(t, err)
	defer c.Close()
	for _, o := range []StatusOptions{{}, {Live: true, Components: true}} {
		s := text(c.Status(testContext(t), o))
		for owner, cluster := range map[string]string{"Garden local on runtime": Runtime, "Seed local on local": Virtual, "Shoot garden-local/local on local": Virtual} {
			assert.Contains(t, s, fmt.Sprintf("%s: unknown, because cluster %s cannot be reached\n", owner, cluster))
			assert.Contains(t, s, fmt.Sprintf("✗ cluster %s at https://127.0.0.1:1 does not answer: dial tcp 127.0.0.1:1: connect: connection refused (check that the API server runs", cluster))
		}
		assert.NotContains(t, s, "never reconciled")
	}
}

// An owner that was not applied yet says so, and no line speaks of a thing without a name.
func TestStatusBeforeTheFirstApply(t *testing.T) {
	needsServer(t)
	l, _, err := landscapes.Load(t.Context(), "../../landscapes/local", landscapes.Options{})
	require.NoError(t, err)
	c, err := New(l, Options{Catalogue: components.FS, Connect: Connections{Configs: map[string]*rest.Config{Runtime: server.config, Virtual: server.config, "local": server.config}}, Clock: clocktesting.NewFakeClock(noon)})
	require.NoError(t, err)
	defer c.Close()
	for _, o := range []StatusOptions{{}, {Live: true, Components: true}} {
		s := text(c.Status(testContext(t), o))
		assert.Contains(t, s, "Seed local on local: not ready, never reconciled\n   ├─ ✗ it is not on cluster virtual, because what Git declares was not applied there yet (run pergola apply)\n")
		assert.Contains(t, s, "Garden local on runtime: not ready, never reconciled\n")
		assert.NotContains(t, s, " : ")
		assert.NotContains(t, s, "NoKind")
	}
}

func TestStatusSaysWhoReconciles(t *testing.T) {
	s := example()
	s.Live, s.Owners[0].JudgedAt = true, &noon
	assert.Contains(t, text(s), "Garden local on runtime: Ready now, ")
	assert.Contains(t, text(s), "\nConditions are judged now; nothing was written.\n")
	assert.NotContains(t, text(s), "Nobody")

	s = example()
	s.Owners[0].Keeper, s.Owners[0].unkept = "laptop_7", false
	assert.Contains(t, text(s), "\nlaptop_7 reconciles it.\nNobody reconciles the others: ")
	s.Owners[1].unkept, s.Owners[1].Shoots[0].unkept, s.Owners[1].Shoots[1].unkept, s.Owners[1].Shoots[2].unkept = false, false, false, false
	assert.NotContains(t, text(s), "Nobody", "what is not known, or ourselves, is not claimed")
}

func TestStatusIsTheSameInSpiteOfItsAge(t *testing.T) {
	s, later := example(), example()
	later.At, later.Owners[0].JudgedAt = noon.Add(time.Hour), &noon
	assert.True(t, s.Same(later))
	later.Owners[1].Shoots[0].Ready = true
	assert.False(t, s.Same(later))
	assert.NotNil(t, s.Owners[0].JudgedAt, "comparing changes nothing")
}

func TestJudgedAtIsTheNewestTime(t *testing.T) {
	condition := func(d time.Duration) gardencorev1beta1.Condition {
		return gardencorev1beta1.Condition{LastUpdateTime: metav1.NewTime(noon.Add(-d))}
	}
	assert.Nil(t, judgedAt(nil, nil))
	assert.Nil(t, judgedAt(&gardencorev1beta1.LastOperation{}, []gardencorev1beta1.Condition{{}}))
	assert.Equal(t, before(2*time.Second), judgedAt(succeeded(3*time.Second), []gardencorev1beta1.Condition{condition(time.Minute), condition(2 * time.Second)}))
	assert.Equal(t, before(time.Second), judgedAt(succeeded(time.Second), []gardencorev1beta1.Condition{condition(time.Minute)}))
}

// Who reconciles is read from the lease: its holder as long as it renews, and when everything was judged last.
func TestKeeper(t *testing.T) {
	l := newLeased(t)
	c := bare(clocktesting.NewFakeClock(noon), nil)
	read := func() *keeper {
		t.Helper()
		k, err := c.keeperOf(testContext(t), testCluster(t), l.name)
		require.NoError(t, err)
		return k
	}
	_, err := c.keeperOf(testContext(t), testCluster(t), l.name)
	require.Error(t, err, "there is no lease yet")
	l.write("laptop", noon.Add(-leaseRenew))
	assert.Equal(t, &keeper{holder: "laptop"}, read())
	l.write("laptop", noon.Add(-time.Minute))
	assert.Equal(t, &keeper{}, read(), "it has crashed")
	l.write("", noon)
	assert.Equal(t, &keeper{}, read(), "it was given back")

	own := newLeased(t)
	l.name = own.name
	own.clock = clocktesting.NewFakeClock(noon)
	got, err := own.acquire(testCluster(t), "laptop")
	require.NoError(t, err)
	got.noteJudged(noon.Add(-3 * time.Second))
	got.release()
	k := read()
	assert.True(t, k.judged.Equal(noon.Add(-3*time.Second)), "the last judgement is known after the holder has gone: %s", k.judged)

	s := OwnerStatus{JudgedAt: before(time.Hour)}
	k.describe(&s, "me")
	assert.True(t, s.unkept)
	assert.True(t, s.JudgedAt.Equal(k.judged))
	s = OwnerStatus{}
	(&keeper{holder: "me", judged: noon}).describe(&s, "me")
	assert.Equal(t, OwnerStatus{}, s, "an owner without status was never judged; we are nobody else")
}

func TestExemptionsNameEachLeaseOnce(t *testing.T) {
	assert.Contains(t, DescribeExemptions(), fmt.Sprintf("\n  Leases garden/%s (runtime cluster) and garden/%s (seeds)\n", leaseOperator, leaseGardenlet))
}
