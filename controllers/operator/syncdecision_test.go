// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pergola-dev/pergola/api/crds"
	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) // a Wednesday

func TestDecideSync(t *testing.T) {
	base := syncInput{now: noon, commits: knownCommits{wanted: "b", applied: "b", attempted: "b"}, timing: syncTiming{lastEnd: noon.Add(-time.Minute), windows: windowState{isOpen: true}, interval: 10 * time.Minute, retryInterval: 15 * time.Second}}
	opens := noon.Add(3 * time.Hour)
	for name, test := range map[string]struct {
		change  func(*syncInput)
		trigger string
		waiting string
		at      time.Time
	}{
		"nothing to do":                       {func(*syncInput) {}, "", "", noon.Add(9 * time.Minute)},
		"others are looked at a little later": {func(s *syncInput) { s.timing.jitterShare = 0.5 }, "", "", noon.Add(9*time.Minute + 30*time.Second)},
		"interval is over":                    {func(s *syncInput) { s.timing.lastEnd = noon.Add(-10 * time.Minute) }, triggerInterval, "", time.Time{}},
		"source not known":                    {func(s *syncInput) { s.commits.wanted = "" }, "", "the revision is not known yet", time.Time{}},
		"new commit":                          {func(s *syncInput) { s.commits.wanted = "c" }, triggerCommit, "", time.Time{}},
		"pinned to another":                   {func(s *syncInput) { s.commits.wanted, s.commits.isPinned = "a", true }, triggerPin, "", time.Time{}},
		"asked for":                           {func(s *syncInput) { s.syncReasons.syncRequested = true }, triggerRequest, "", time.Time{}},
		"the Garden is asked for something":   {func(s *syncInput) { s.syncReasons.operationRequested = true }, triggerOperation, "", time.Time{}},
		"so it is, and a sync goes on":        {func(s *syncInput) { s.syncReasons.operationRequested, s.isBusy = true, true }, "", "", time.Time{}},
		"on its way": {func(s *syncInput) {
			s.isBusy, s.syncReasons.syncRequested, s.failures, s.timing.lastEnd = true, true, 3, time.Time{}
		}, "", "", time.Time{}},
		"newer than what is on its way":  {func(s *syncInput) { s.isBusy, s.commits.wanted = true, "c" }, triggerCommit, "", time.Time{}},
		"another tag of the same commit": {func(s *syncInput) { s.commits.isRetagged = true }, triggerCommit, "", time.Time{}},
		"something approved":             {func(s *syncInput) { s.syncReasons.specChanged, s.syncReasons.onlyApprovalsChanged = true, true }, triggerApproval, "", time.Time{}},
		"object changed":                 {func(s *syncInput) { s.syncReasons.specChanged = true }, triggerSpec, "", time.Time{}},
		"failed once":                    {func(s *syncInput) { s.failures, s.timing.lastEnd = 1, noon.Add(-10*time.Second) }, "", "", noon.Add(5 * time.Second)},
		"failed once, time is over":      {func(s *syncInput) { s.failures, s.timing.lastEnd = 1, noon.Add(-15*time.Second) }, triggerRetry, "", time.Time{}},
		"failed three times":             {func(s *syncInput) { s.failures, s.timing.lastEnd = 3, noon }, "", "", noon.Add(time.Minute)},
		"failed a hundred times":         {func(s *syncInput) { s.failures, s.timing.lastEnd = 100, noon }, "", "", noon.Add(10 * time.Minute)},
		"a newer commit does not wait":   {func(s *syncInput) { s.failures, s.timing.lastEnd, s.commits.wanted = 100, noon, "c" }, triggerCommit, "", time.Time{}},
		"permanent failure waits":        {func(s *syncInput) { s.failures, s.isPermanent, s.timing.lastEnd = 1, true, noon }, "", "", noon.Add(10 * time.Minute)},
		"suspended":                      {func(s *syncInput) { s.suspendReason, s.commits.wanted = "suspended: x", "c" }, "", "suspended: x", time.Time{}},
		"blocked":                        {func(s *syncInput) { s.blockReason, s.commits.wanted = "waiting for a", "c" }, "", "waiting for a", time.Time{}},
		"blocked with nothing to do":     {func(s *syncInput) { s.blockReason = "waiting for a" }, "", "", noon.Add(9 * time.Minute)},
		"window closed for a new one":    {func(s *syncInput) { s.timing.windows, s.commits.wanted = windowState{opensAt: opens}, "c" }, "", "waiting for the next window, which opens at 2026-03-04T15:00:00Z", opens},
		"window never opens":             {func(s *syncInput) { s.timing.windows, s.commits.wanted = windowState{}, "c" }, "", "no window opens again: see spec.windows, and status.windows for those of landscape.yaml", time.Time{}},
		"window closed, the same is repaired": {func(s *syncInput) {
			s.timing.windows, s.timing.lastEnd = windowState{opensAt: opens}, noon.Add(-time.Hour)
		}, triggerInterval, "", time.Time{}},
		"window closed, a request changes no bit": {func(s *syncInput) {
			s.timing.windows, s.syncReasons.syncRequested, s.commits.wanted, s.commits.attempted = windowState{opensAt: opens}, true, "c", "c"
		}, "", "waiting for the next window, which opens at 2026-03-04T15:00:00Z", opens},
	} {
		t.Run(name, func(t *testing.T) {
			s := base
			test.change(&s)
			assert.Equal(t, decision{trigger: test.trigger, waitReason: test.waiting, nextCheck: test.at}, decideSync(s))
		})
	}
}

// TestTriggersAreDescribed: the API documents every trigger of a sync, and no other.
func TestTriggersAreDescribed(t *testing.T) {
	definition, err := crds.FS.ReadFile("landscape.pergola.dev_landscapes.yaml")
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(definition)), " ") // the description has line breaks
	_, text, found := strings.Cut(text, "Cause of the sync: ")
	require.True(t, found)
	text, _, found = strings.Cut(text, "type: string")
	require.True(t, found)
	var named []string
	for _, match := range regexp.MustCompile("`([A-Z][a-z]+)`").FindAllStringSubmatch(text, -1) {
		named = append(named, match[1])
	}
	assert.ElementsMatch(t, []string{triggerCommit, triggerInterval, triggerRequest, triggerRetry, triggerSpec, triggerPin, triggerOperation, triggerApproval}, named)
}

func TestJitter(t *testing.T) {
	seen := map[float64]bool{}
	for _, name := range []string{"garden/a", "garden/b", "garden/c"} {
		share := jitterShareOf(name)
		assert.True(t, share >= 0 && share < 1)
		assert.Equal(t, share, jitterShareOf(name))
		seen[share] = true
	}
	assert.Len(t, seen, 3)
}

func TestWindows(t *testing.T) {
	window := func(schedule, length, zone string) landscapev1alpha1.SyncWindow {
		d, err := time.ParseDuration(length)
		require.NoError(t, err)
		return landscapev1alpha1.SyncWindow{Schedule: schedule, Duration: metav1.Duration{Duration: d}, TimeZone: zone}
	}
	list := func(w ...landscapev1alpha1.SyncWindow) []landscapev1alpha1.SyncWindow { return w }
	for name, test := range map[string]struct {
		lists [][]landscapev1alpha1.SyncWindow
		open  bool
		next  time.Time
	}{
		"none":                   {nil, true, time.Time{}},
		"empty":                  {[][]landscapev1alpha1.SyncWindow{nil, nil}, true, time.Time{}},
		"within":                 {[][]landscapev1alpha1.SyncWindow{list(window("0 8 * * 1-5", "8h", ""))}, true, time.Time{}},
		"opens now":              {[][]landscapev1alpha1.SyncWindow{list(window("0 12 * * *", "1m", ""))}, true, time.Time{}},
		"closed just now":        {[][]landscapev1alpha1.SyncWindow{list(window("0 11 * * *", "1h", ""))}, false, noon.Add(23 * time.Hour)},
		"other days":             {[][]landscapev1alpha1.SyncWindow{list(window("0 8 * * 6", "8h", ""))}, false, time.Date(2026, 3, 7, 8, 0, 0, 0, time.UTC)},
		"another zone":           {[][]landscapev1alpha1.SyncWindow{list(window("0 8 * * *", "4h", "America/New_York"))}, false, noon.Add(time.Hour)},
		"one of two in a list":   {[][]landscapev1alpha1.SyncWindow{list(window("0 8 * * 6", "8h", ""), window("0 9 * * 3", "4h", ""))}, true, time.Time{}},
		"both lists":             {[][]landscapev1alpha1.SyncWindow{list(window("0 8 * * *", "8h", "")), list(window("0 14 * * *", "1h", ""))}, false, noon.Add(2 * time.Hour)},
		"never, and sometimes":   {[][]landscapev1alpha1.SyncWindow{list(window("0 0 30 2 *", "2h", "")), list(window("0 4 * * *", "1h", ""))}, false, time.Time{}},
		"daily, and once a year": {[][]landscapev1alpha1.SyncWindow{list(window("0 22 * * *", "2h", "")), list(window("0 3 * * *", "2h", ""), window("0 0 1 7 *", "24h", ""))}, false, time.Date(2026, 7, 1, 22, 0, 0, 0, time.UTC)},
		"both, later":            {[][]landscapev1alpha1.SyncWindow{list(window("0 8 1 * *", "8h", "")), list(window("0 8 * * 6", "8h", ""))}, false, time.Date(2026, 8, 1, 8, 0, 0, 0, time.UTC)},
		"both closed":            {[][]landscapev1alpha1.SyncWindow{list(window("0 13 * * *", "8h", "")), list(window("0 14 * * *", "1h", ""))}, false, noon.Add(2 * time.Hour)},
		"longer than its cycle":  {[][]landscapev1alpha1.SyncWindow{list(window("0 13 * * *", "48h", ""))}, true, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			state, err := windowStateAt(noon, test.lists...)
			require.NoError(t, err)
			assert.Equal(t, windowState{isOpen: test.open, opensAt: test.next}, state)
		})
	}
	for _, never := range [][][]landscapev1alpha1.SyncWindow{
		{list(window("0 22 * * *", "2h", "")), list(window("0 4 * * *", "1h", ""))},
		{list(window("0 8,12,16 * * *", "1h", "")), list(window("0 10,14,18 * * *", "1h", ""))},
	} {
		state, err := findCommonOpening(noon, unlimitedOpenings, never...)
		require.NoError(t, err)
		assert.True(t, isNeverOpen(state))
		state, err = windowStateAt(noon, never...)
		require.NoError(t, err)
		assert.False(t, isNeverOpen(state), "so many are not looked at each time")
	}
	for want, w := range map[string]landscapev1alpha1.SyncWindow{
		`spec.windows[0]: schedule "8 o'clock"`:                                                              window("8 o'clock", "1h", ""),
		`spec.windows[0]: duration "0s": want more than 0, such as 8h`:                                       window("0 8 * * *", "0s", ""),
		`spec.windows[0]: timeZone "Berlin": no zone of that name is known; write one such as Europe/Berlin`: window("0 8 * * *", "1h", "Berlin"),
		`spec.windows[0]: timeZone "Local": no zone of that name is known; write one such as Europe/Berlin`:  window("0 8 * * *", "1h", "Local"),
		`write minute, hour, day of the month, month and day of the week, such as "0 8 * * 1-5"`:             window("99 8 * * *", "1h", ""),
	} {
		_, err := windowStateAt(noon, list(w))
		require.ErrorContains(t, err, want)
	}
}

func TestEffectiveDeletionGate(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	text := func(s string) *string { return &s }
	type gate = landscapev1alpha1.DeletionGate
	standard := []string{"PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition", "Etcd", "Garden", "Seed", "Shoot", "Project"}
	for name, test := range map[string]struct {
		object, file *gate
		want         gate
		loosened     int
	}{
		"neither":           {nil, nil, gate{MaxDeletions: number(100), ProtectedKinds: standard}, 0},
		"commit tightens":   {nil, &gate{MaxDeletions: number(5), MaxShare: text("10%")}, gate{MaxDeletions: number(5), MaxShare: text("10%"), ProtectedKinds: standard}, 0},
		"commit loosens":    {nil, &gate{MaxDeletions: number(5000), MaxShare: text("90%")}, gate{MaxDeletions: number(100), ProtectedKinds: standard}, 2},
		"object loosens":    {&gate{MaxDeletions: number(5000), ProtectedKinds: []string{}}, nil, gate{MaxDeletions: number(5000), ProtectedKinds: []string{}}, 0},
		"both":              {&gate{MaxShare: text("20%")}, &gate{MaxShare: text("30%")}, gate{MaxDeletions: number(100), MaxShare: text("20%"), ProtectedKinds: standard}, 1},
		"commit protects":   {&gate{ProtectedKinds: []string{"Seed"}}, &gate{ProtectedKinds: []string{"Seed", "Secret"}}, gate{MaxDeletions: number(100), ProtectedKinds: []string{"Seed", "Secret"}}, 0},
		"commit unprotects": {&gate{ProtectedKinds: []string{"Seed", "Shoot"}}, &gate{ProtectedKinds: []string{}}, gate{MaxDeletions: number(100), ProtectedKinds: []string{"Seed", "Shoot"}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got, loosened, err := effectiveDeletionGate(test.object, test.file)
			require.NoError(t, err)
			assert.Equal(t, &test.want, got)
			assert.Len(t, loosened, test.loosened, loosened)
		})
	}
	_, _, err := effectiveDeletionGate(nil, &gate{MaxShare: text("a lot")})
	require.ErrorContains(t, err, "landscape.yaml: spec.deletionGate.maxShare")
}

// TestRequestWaitsForItsPoll: a requested sync waits for a poll and does not repeat the known
// revision.
func TestRequestWaitsForItsPoll(t *testing.T) {
	s := &landscapeReconciler{operator: &runningOperator{}, object: &landscapev1alpha1.Landscape{}, status: &statusWriter{}, sourceAccess: sourceState{remote: &sourceConnection{}}, requests: pendingRequests{syncRequested: true, awaitsPoll: true}}
	s.object.Spec.Source = &landscapev1alpha1.Source{}
	s.sourceAccess.head.Commit, s.jobs.lastOutcome.commit = "b", "b"
	assert.False(t, s.currentSyncInput(noon).syncReasons.syncRequested)
	s.sourceAccess.remote.isOffline = true
	assert.True(t, s.currentSyncInput(noon).syncReasons.syncRequested, "nobody can be asked")
	s.sourceAccess.remote.isOffline, s.requests.awaitsPoll = false, false
	assert.True(t, s.currentSyncInput(noon).syncReasons.syncRequested)
}
