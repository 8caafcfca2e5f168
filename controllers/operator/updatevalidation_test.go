// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

func (r *testRepository) immutableConfigMap(name, value string) string {
	return r.configMap(name, value) + "immutable: true\n"
}

// TestRejectionSurvivesRestart: a restarted operator still validates against the applied revision.
func TestRejectionSurvivesRestart(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("refused")
	first := r.commit("it is made", map[string]string{"v.yaml": r.immutableConfigMap("v", "1")})
	stop := w.startOperator()
	w.createLandscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Review = landscapev1alpha1.ReviewRequired })
	w.awaitReady(r.name, "True Applied: ")
	uid := w.configMapUID("v")
	refused := func(commit string) {
		t.Helper()
		l := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
			return strings.Contains(readyText(l), commit) && strings.HasPrefix(readyText(l), "False Invalid: ")
		})
		assert.Contains(t, readyText(l), "must not change: the object is immutable")
		assert.True(t, strings.HasSuffix(l.Status.LastAppliedRevision, first))
		assert.Empty(t, l.Status.Tried)
		assert.Equal(t, uid, w.configMapUID("v"))
	}
	refused(r.commit("it is changed", map[string]string{"v.yaml": r.immutableConfigMap("v", "2")}))
	stop()
	another := r.commit("something else", map[string]string{"w.yaml": r.configMap("w", "1")})
	stop = w.startOperator()
	refused(another)
	stop()
	w.writeStatus(r.name, func(s *landscapev1alpha1.LandscapeStatus) { s.Conditions = nil })
	w.startOperator()
	refused(another)
	assert.Empty(t, w.configMapValue("w"))
	r.commit("it is as it was", map[string]string{"v.yaml": r.immutableConfigMap("v", "1")})
	w.awaitReady(r.name, "True Applied: ")
	assert.Equal(t, "1", w.configMapValue("w"))
	assert.Equal(t, uid, w.configMapUID("v"))
}

// TestTriedRevisionIsNotTheBase: the fix of a failed commit is validated against the applied one.
func TestTriedRevisionIsNotTheBase(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("tried")
	w.startOperator()
	w.createLandscape(r.name, r)
	w.awaitReady(r.name, "True Applied: ")
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "z"}, Data: map[string]string{"value": "theirs"}}
	require.NoError(t, w.client.Create(context.Background(), theirs, client.FieldOwner("mytool")))
	r.commit("it is another's", map[string]string{"z.yaml": r.immutableConfigMap("z", "ours")})
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), "mytool") })
	r.commit("both own it", map[string]string{"z.yaml": r.immutableConfigMap("z", "theirs")})
	w.awaitReady(r.name, "True Applied: ")
	assert.Equal(t, "theirs", w.configMapValue("z"))
}

// TestApproveForMaintainedRevision: held deletions of the maintained revision can be approved.
func TestApproveForMaintainedRevision(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("approved")
	r.commit("r1", map[string]string{"r1.yaml": r.recreatableConfigMap("r1", "1")})
	w.startOperator()
	w.createLandscape(r.name, r, requireReview)
	w.awaitReady(r.name, "True Applied: ")
	byHand := client.RawPatch(types.MergePatchType, []byte(`{"immutable": true, "data": {"value": "by hand"}}`))
	require.NoError(t, w.client.Patch(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "r1"}}, byHand, client.FieldOwner("kubectl-edit")))
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readyText(l), reasonDrift) })
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) {
		l.Annotations = map[string]string{landscapev1alpha1.AnnotationSyncRequested: "now"}
	})
	held := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 1 }).Status.Held[0]
	invalid := r.commit("nonsense", map[string]string{"x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not Valid}\n"})
	refused := func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readyText(l), "False Invalid: ") && strings.Contains(readyText(l), invalid)
	}
	w.awaitLandscape(r.name, refused)
	assert.Equal(t, "by hand", w.configMapValue("r1"))
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Approved = []string{held.Approval} })
	w.eventually("it passes", func() bool { return w.configMapValue("r1") == "1" })
	l := w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool { return refused(l) && len(l.Status.Held) == 0 })
	assert.Equal(t, []string{held.Approval}, l.Status.UsedApprovals)
	assert.Equal(t, triggerApproval, l.Status.History[0].Trigger)
	assert.Equal(t, landscapev1alpha1.SyncSucceeded, l.Status.History[0].Result)
}

// hourlySchedule is a schedule that begins so many hours from now.
func hourlySchedule(from int) string {
	return fmt.Sprintf("0 %d * * *", (time.Now().UTC().Hour()+from+24)%24)
}

// TestDisjointWindows: disjoint windows do not stop maintenance, also after a restart. A
// rejected revision is retried with other windows.
func TestDisjointWindows(t *testing.T) {
	w := newTestEnv(t)
	r := w.newRepository("windows")
	inGit := func(schedule, value string) map[string]string {
		config := r.landscapeFile("")
		if schedule != "" {
			config = r.landscapeFile(fmt.Sprintf("  windows: [{schedule: %q, duration: 3h}]\n", schedule))
		}
		return map[string]string{"landscape.yaml": config, "a.yaml": r.configMap("a", value)}
	}
	applied := r.commit("open now", inGit(hourlySchedule(-1), "2"))
	stop := w.startOperator()
	w.createLandscape(r.name, r)
	w.awaitReady(r.name, "True Applied: ")
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.Windows = []landscapev1alpha1.SyncWindow{{Schedule: hourlySchedule(8), Duration: metav1.Duration{Duration: time.Hour}}}
	})
	stop()
	require.NoError(t, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}))
	w.startOperator()
	w.eventually("it is made again", func() bool { return w.configMapValue("a") == "2" })
	assert.True(t, strings.HasSuffix(w.getLandscape(r.name).Status.LastAppliedRevision, applied))

	refused := r.commit("they still never meet", inGit(hourlySchedule(-1), "3"))
	w.awaitLandscape(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readyText(l), "no window overlaps with one of the Landscape in the cluster") && strings.Contains(readyText(l), refused)
	})
	w.changeLandscape(r.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Windows = nil })
	w.awaitReady(r.name, "True Applied: ")
	assert.Equal(t, "3", w.configMapValue("a"))
}

// TestMaintainIntervalWithoutSource: without the source the applied revision is applied at its
// interval, not in a loop.
func TestMaintainIntervalWithoutSource(t *testing.T) {
	w := newTestEnv(t)
	s := w.newServedRepository("nosource")
	server := gittest.ServeTLS(t, s.server.Root)
	change := requireLogin(server, "git", "one")
	var asked atomic.Int32
	secret := func(password string) map[string]string {
		return map[string]string{"username": "git", "password": password, "ca.crt": certificateOf(server)}
	}
	w.createSecret("login", secret("one"))
	w.startOperator()
	w.followServed(s, repositoryURL(server.URL), withSourceSecret("login"))
	w.awaitApplied(s, "", "1")
	s.push("nonsense", map[string]string{"x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not Valid}\n"})
	w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return strings.HasPrefix(readyText(l), "False Invalid: ") })
	change("two")
	server.Intercept(func(out http.ResponseWriter, _ *http.Request) bool {
		asked.Add(1)
		out.WriteHeader(http.StatusUnauthorized)
		return true
	})
	before := w.countSyncs()
	w.replaceSecret("login", secret("three"))
	w.eventually("it has asked in vain", func() bool { return asked.Load() > 4 })
	assert.LessOrEqual(t, w.countSyncs()-before, int(asked.Load()), "what is kept is not applied all the time")
	w.awaitRepaired(s, "1")
}

// countSyncs counts all syncs.
func (w *testEnv) countSyncs() int {
	w.Helper()
	n := 0
	for line := range strings.Lines(httpBody(w.T, w.metricsAddress)) {
		if strings.HasPrefix(line, "pergola_landscape_sync_total{") {
			count, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
			require.NoError(w, err)
			n += int(count)
		}
	}
	return n
}
