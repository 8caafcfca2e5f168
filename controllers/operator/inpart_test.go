package operator

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/components"
	"github.com/pergola-dev/pergola/controllers/landscape"
	"github.com/pergola-dev/pergola/controllers/notification"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/source"
	"github.com/pergola-dev/pergola/source/receiver"
)

// quietSyncer returns a syncer without an operator, with its status only in memory.
func quietSyncer(t *testing.T, status landscapev1alpha1.LandscapeStatus) *syncer {
	t.Helper()
	clk := clocktesting.NewFakeClock(noon)
	log := slog.New(slog.DiscardHandler)
	notifier := notification.New(notification.Options{Recorder: events.NewFakeRecorder(100), Clock: clk})
	return &syncer{parts: &parts{role: &Role{Clock: clk, Log: log}, notifier: notifier, metrics: newMetrics(), desk: &desk{sinks: map[receiver.Key]sink{}}}, hub: &hub{}, life: lifetime{alive: t.Context()},
		object: &landscapev1alpha1.Landscape{}, status: &statusWriter{clock: clk, log: log, now: status, written: status}}
}

// minimal is a revision that declares nothing.
func minimal(t *testing.T, commit string) *revision {
	t.Helper()
	l, _, err := landscapes.LoadFS(t.Context(), minimalFiles, ".", landscapes.Options{})
	require.NoError(t, err)
	return &revision{Snapshot: &source.Snapshot{Head: source.Head{Name: "main", Commit: commit}}, landscape: l, folder: "."}
}

var minimalFiles = fstest.MapFS{"landscape.yaml": {Data: []byte("apiVersion: landscape.pergola.dev/v1alpha1\nkind: Landscape\nmetadata: {name: test}\nspec:\n  catalogue: {version: " + components.Version + "}\n")}}

// thoseTried are attempted revisions in the repository's root.
func thoseTried(revisions ...string) (out []landscapev1alpha1.TriedRevision) {
	for _, revision := range revisions {
		out = append(out, landscapev1alpha1.TriedRevision{Revision: revision, Path: "."})
	}
	return out
}

// TestWhatStaysApplied: the answer to a push that cannot be applied names the revision in force as
// the conditions do.
func TestWhatStaysApplied(t *testing.T) {
	const a, b = "main@sha1:a", "main@sha1:b"
	for name, test := range map[string]struct {
		status landscapev1alpha1.LandscapeStatus
		unkept *unkept
		active *job
		want   string
	}{
		"nothing":                         {want: ""},
		"one":                             {status: landscapev1alpha1.LandscapeStatus{LastAppliedRevision: a}, want: "; " + a + " stays applied"},
		"another one in part":             {status: landscapev1alpha1.LandscapeStatus{LastAppliedRevision: a, Tried: thoseTried(b)}, want: "; " + b + " stays applied in part, on top of " + a},
		"the first one in part":           {status: landscapev1alpha1.LandscapeStatus{Tried: thoseTried(b)}, want: "; " + b + " stays applied in part"},
		"it is not kept":                  {status: landscapev1alpha1.LandscapeStatus{LastAppliedRevision: a}, unkept: &unkept{commit: "a", err: errors.New("it is lost")}, want: "; " + a + " was applied last, and nothing keeps it now: it is lost"},
		"it is kept again":                {status: landscapev1alpha1.LandscapeStatus{LastAppliedRevision: a}, unkept: &unkept{commit: "a", err: errors.New("it is lost")}, active: &job{}, want: "; " + a + " stays applied"},
		"one that was tried before it is": {status: landscapev1alpha1.LandscapeStatus{LastAppliedRevision: a}, unkept: &unkept{commit: "z", err: errors.New("it is lost")}, want: "; " + a + " stays applied"},
	} {
		t.Run(name, func(t *testing.T) {
			s := quietSyncer(t, test.status)
			s.jobs.unkept, s.jobs.active = test.unkept, test.active
			assert.Equal(t, test.want, s.staysApplied())
		})
	}
}

// TestAReviewIsTheSameOverTries: recording an attempt does not change the review of its commit,
// whatever was attempted before.
func TestAReviewIsTheSameOverTries(t *testing.T) {
	tried := func(names ...string) (out []landscapev1alpha1.TriedRevision) {
		for _, name := range names {
			out = append(out, thoseTried("main@sha1:"+name)...)
		}
		return out
	}
	for name, test := range map[string]struct {
		before, after []landscapev1alpha1.TriedRevision
		id            string
	}{
		"the first":               {tried(), tried("n"), "a..n:."},
		"the sixth":               {tried("t1", "t2", "t3", "t4", "t5"), tried("t1", "t2", "t3", "t4", "t5", "n"), "a,t1,t2,t3,t4,t5..n:."},
		"the seventh":             {tried("t1", "t2", "t3", "t4", "t5", "t6"), tried("t2", "t3", "t4", "t5", "t6", "n"), "a,t2,t3,t4,t5,t6..n:."},
		"one that was tried":      {tried("t1", "n", "t3", "t4", "t5", "t6"), tried("t1", "t3", "t4", "t5", "t6", "n"), "a,t1,t3,t4,t5,t6..n:."},
		"the one that is applied": {tried("t1", "t2", "t3", "t4", "a", "t6"), tried("t2", "t3", "t4", "a", "t6", "n"), "a,t2,t3,t4,t6..n:."},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := quietSyncer(t, landscapev1alpha1.LandscapeStatus{LastAppliedRevision: "main@sha1:a", LastAppliedPath: ".", Tried: test.before}), commitAt{"n", "."}
			assert.Equal(t, test.id, reviewID(basesOf(&s.status.now, n), n))
			s.status.written.Tried = test.after // as if it could be written
			require.True(t, s.noteTried(minimal(t, "n")), fmt.Sprint(s.status.now.Tried))
			assert.Equal(t, test.after, s.status.now.Tried)
			assert.Equal(t, test.id, reviewID(basesOf(&s.status.now, n), n))
		})
	}
}

// TestWhatCannotBeNotedIsTriedAgain: if the status cannot be written after a restart, the applied
// revision is reported as not maintained, and retried. No newer revision is rejected for it.
func TestWhatCannotBeNotedIsTriedAgain(t *testing.T) {
	for name, purpose := range map[string]purpose{"a new one": purposeDue, "one that is to be kept": purposeKept} {
		t.Run(name, func(t *testing.T) {
			s := quietSyncer(t, landscapev1alpha1.LandscapeStatus{LastAppliedRevision: "main@sha1:a", LastAppliedPath: ".", Windows: closed})
			r := minimal(t, "a")
			converger, err := landscape.New(r.landscape, landscape.Options{Catalogue: components.FS, Clock: s.parts.role.Clock})
			require.NoError(t, err)
			p := &preparation{commitAt: commitAt{"a", "."}, attempt: attempt{purpose: purpose}, cancel: func() {}}
			s.jobs.preparing, s.origin.head.Commit = p, "c"
			s.object.Spec.Source = &landscapev1alpha1.Source{}
			s.isPrepared(p, &job{revision: r, converger: converger}, nil)
			assert.Nil(t, s.jobs.active)
			if !purpose.isFormer() {
				assert.Equal(t, "a", s.jobs.last.commit)
				return
			}
			require.NotNil(t, s.jobs.unkept)
			assert.ErrorContains(t, s.jobs.unkept.err, "it cannot be noted in the status")
			assert.Empty(t, s.jobs.last.commit)
			assert.Equal(t, noon.Add(retryInterval(&s.object.Spec)), s.keepFormer(noon), "it is tried again")
		})
	}
}

// TestTheCacheIsAskedForTheTagThatIsKept: with signed tags, the maintained revision names the tag,
// even if no sync is complete.
func TestTheCacheIsAskedForTheTagThatIsKept(t *testing.T) {
	_, public := signingKey(t)
	l := &landscapev1alpha1.Landscape{}
	l.Spec.Source = &landscapev1alpha1.Source{URL: "https://git.example.org/a.git", Ref: &landscapev1alpha1.Reference{SemVer: "x"}, Verify: &landscapev1alpha1.Verification{Mode: landscapev1alpha1.VerifyTag}}
	p := &parts{role: &Role{Clock: clocktesting.NewFakeClock(noon), CacheDir: t.TempDir()}}
	keys := map[string][]byte{"ada.pub": []byte(public)}
	remote, err := p.openCache(l, keys, "v1.0.0@sha1:"+strings.Repeat("b", 40))
	require.NoError(t, err)
	require.NoError(t, remote.Close())
	_, err = p.openCache(l, keys, "")
	assert.ErrorContains(t, err, "ref.tag")
}
