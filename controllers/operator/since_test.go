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

func (r *repository) immutable(name, value string) string {
	return r.configMap(name, value) + "immutable: true\n"
}

// TestWhatWasRefusedStaysSo: a restarted operator still validates against the applied revision.
func TestWhatWasRefusedStaysSo(t *testing.T) {
	w := newWorld(t)
	r := w.repository("refused")
	first := r.commit("it is made", map[string]string{"v.yaml": r.immutable("v", "1")})
	stop := w.start()
	w.landscape(r.name, r, func(spec *landscapev1alpha1.LandscapeSpec) { spec.Review = landscapev1alpha1.ReviewRequired })
	w.ready(r.name, "True Applied: ")
	uid := w.uid("v")
	refused := func(commit string) {
		t.Helper()
		l := w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
			return strings.Contains(readiness(l), commit) && strings.HasPrefix(readiness(l), "False Invalid: ")
		})
		assert.Contains(t, readiness(l), "must not change: the object is immutable")
		assert.True(t, strings.HasSuffix(l.Status.LastAppliedRevision, first))
		assert.Empty(t, l.Status.Tried)
		assert.Equal(t, uid, w.uid("v"))
	}
	refused(r.commit("it is changed", map[string]string{"v.yaml": r.immutable("v", "2")}))
	stop()
	another := r.commit("something else", map[string]string{"w.yaml": r.configMap("w", "1")})
	stop = w.start()
	refused(another)
	stop()
	w.writeStatus(r.name, func(s *landscapev1alpha1.LandscapeStatus) { s.Conditions = nil })
	w.start()
	refused(another)
	assert.Empty(t, w.value("w"))
	r.commit("it is as it was", map[string]string{"v.yaml": r.immutable("v", "1")})
	w.ready(r.name, "True Applied: ")
	assert.Equal(t, "1", w.value("w"))
	assert.Equal(t, uid, w.uid("v"))
}

// TestWhatWasOnlyTried: the fix of a failed commit is validated against the applied one.
func TestWhatWasOnlyTried(t *testing.T) {
	w := newWorld(t)
	r := w.repository("tried")
	w.start()
	w.landscape(r.name, r)
	w.ready(r.name, "True Applied: ")
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "z"}, Data: map[string]string{"value": "theirs"}}
	require.NoError(t, w.client.Create(context.Background(), theirs, client.FieldOwner("mytool")))
	r.commit("it is another's", map[string]string{"z.yaml": r.immutable("z", "ours")})
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readiness(l), "mytool") })
	r.commit("both own it", map[string]string{"z.yaml": r.immutable("z", "theirs")})
	w.ready(r.name, "True Applied: ")
	assert.Equal(t, "theirs", w.value("z"))
}

// TestApprovedWhileTheNewestIsInvalid: held deletions of the maintained revision can be approved.
func TestApprovedWhileTheNewestIsInvalid(t *testing.T) {
	w := newWorld(t)
	r := w.repository("approved")
	r.commit("r1", map[string]string{"r1.yaml": r.recreatable("r1", "1")})
	w.start()
	w.landscape(r.name, r, demandsReview)
	w.ready(r.name, "True Applied: ")
	byHand := client.RawPatch(types.MergePatchType, []byte(`{"immutable": true, "data": {"value": "by hand"}}`))
	require.NoError(t, w.client.Patch(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "r1"}}, byHand, client.FieldOwner("kubectl-edit")))
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return strings.Contains(readiness(l), reasonDrift) })
	w.change(r.name, func(l *landscapev1alpha1.Landscape) {
		l.Annotations = map[string]string{landscapev1alpha1.AnnotationSyncRequested: "now"}
	})
	held := w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 1 }).Status.Held[0]
	invalid := r.commit("nonsense", map[string]string{"x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not Valid}\n"})
	refused := func(l *landscapev1alpha1.Landscape) bool {
		return strings.HasPrefix(readiness(l), "False Invalid: ") && strings.Contains(readiness(l), invalid)
	}
	w.await(r.name, refused)
	assert.Equal(t, "by hand", w.value("r1"))
	w.change(r.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Approved = []string{held.Approval} })
	w.eventually("it passes", func() bool { return w.value("r1") == "1" })
	l := w.await(r.name, func(l *landscapev1alpha1.Landscape) bool { return refused(l) && len(l.Status.Held) == 0 })
	assert.Equal(t, []string{held.Approval}, l.Status.UsedApprovals)
	assert.Equal(t, triggerApproval, l.Status.History[0].Trigger)
	assert.Equal(t, landscapev1alpha1.SyncSucceeded, l.Status.History[0].Result)
}

// hourly is a schedule that begins so many hours from now.
func hourly(from int) string {
	return fmt.Sprintf("0 %d * * *", (time.Now().UTC().Hour()+from+24)%24)
}

// TestWindowsThatNeverMeet: disjoint windows do not stop maintenance, also after a restart. A
// rejected revision is retried with other windows.
func TestWindowsThatNeverMeet(t *testing.T) {
	w := newWorld(t)
	r := w.repository("windows")
	inGit := func(schedule, value string) map[string]string {
		config := r.config("")
		if schedule != "" {
			config = r.config(fmt.Sprintf("  windows: [{schedule: %q, duration: 3h}]\n", schedule))
		}
		return map[string]string{"landscape.yaml": config, "a.yaml": r.configMap("a", value)}
	}
	applied := r.commit("open now", inGit(hourly(-1), "2"))
	stop := w.start()
	w.landscape(r.name, r)
	w.ready(r.name, "True Applied: ")
	w.change(r.name, func(l *landscapev1alpha1.Landscape) {
		l.Spec.Windows = []landscapev1alpha1.SyncWindow{{Schedule: hourly(8), Duration: metav1.Duration{Duration: time.Hour}}}
	})
	stop()
	require.NoError(t, w.client.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}}))
	w.start()
	w.eventually("it is made again", func() bool { return w.value("a") == "2" })
	assert.True(t, strings.HasSuffix(w.get(r.name).Status.LastAppliedRevision, applied))

	refused := r.commit("they still never meet", inGit(hourly(-1), "3"))
	w.await(r.name, func(l *landscapev1alpha1.Landscape) bool {
		return strings.Contains(readiness(l), "none of them is ever open while one of the Landscape in the cluster is") && strings.Contains(readiness(l), refused)
	})
	w.change(r.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Windows = nil })
	w.ready(r.name, "True Applied: ")
	assert.Equal(t, "3", w.value("a"))
}

// TestRefusedAndThenNoSource: without the source the applied revision is applied at its interval,
// not in a loop.
func TestRefusedAndThenNoSource(t *testing.T) {
	w := newWorld(t)
	s := w.served("nosource")
	server := gittest.ServeTLS(t, s.bare.Root)
	change := protect(server, "git", "one")
	var asked atomic.Int32
	secret := func(password string) map[string]string {
		return map[string]string{"username": "git", "password": password, "ca.crt": certificateOf(server)}
	}
	w.secret("login", secret("one"))
	w.start()
	w.follow(s, repositoryURL(server.URL), login("login"))
	w.applied(s, "", "1")
	s.push("nonsense", map[string]string{"x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not Valid}\n"})
	w.await(s.name, func(l *landscapev1alpha1.Landscape) bool { return strings.HasPrefix(readiness(l), "False Invalid: ") })
	change("two")
	server.Intercept(func(out http.ResponseWriter, _ *http.Request) bool {
		asked.Add(1)
		out.WriteHeader(http.StatusUnauthorized)
		return true
	})
	before := w.syncs()
	w.replace("login", secret("three"))
	w.eventually("it has asked in vain", func() bool { return asked.Load() > 4 })
	assert.LessOrEqual(t, w.syncs()-before, int(asked.Load()), "what is kept is not applied all the time")
	w.repaired(s, "1")
}

// syncs counts all syncs.
func (w *world) syncs() int {
	w.Helper()
	n := 0
	for line := range strings.Lines(body(w.T, w.metrics)) {
		if strings.HasPrefix(line, "pergola_landscape_sync_total{") {
			count, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
			require.NoError(w, err)
			n += int(count)
		}
	}
	return n
}
