// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
	"github.com/pergola-dev/pergola/source/receiver"
)

// TestApprovalOfUnfinishedSync: an approval allows one deletion, even if the sync that used it
// never ended. Either a newer revision or a stop of the operator ended it.
func TestApprovalOfUnfinishedSync(t *testing.T) {
	for name, restart := range map[string]bool{"overtaken": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			s := w.newServedRepository("once")
			w.createSecret("hook", map[string]string{"token": "hook-token"})
			w.cleanGarden()
			stop := w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
			w.followServed(s, repositoryURL(gittest.ServeHTTP(t, s.server.Root).URL), w.addReceiver, func(spec *landscapev1alpha1.LandscapeSpec) {
				spec.DeletionGate = &landscapev1alpha1.DeletionGate{ProtectedKinds: []string{"ConfigMap"}}
				spec.Source.Interval.Duration = testInterval
			})
			w.awaitApplied(s, "", "1")
			// reaches waits until a revision waits for the Garden, which never becomes healthy.
			reaches := func(commit string) {
				w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
					op := l.Status.LastOperation
					return op != nil && strings.Contains(op.Description, commit) && strings.Contains(op.Description, "slow")
				})
			}
			made := s.push("made", map[string]string{"r1.yaml": s.configMap("r1", "1")})
			w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool {
				return strings.HasSuffix(l.Status.LastAppliedRevision, made)
			})
			s.push("gone", map[string]string{"r1.yaml": ""})
			held := w.awaitLandscape(s.name, func(l *landscapev1alpha1.Landscape) bool { return len(l.Status.Held) == 1 }).Status.Held[0]
			reaches(s.push("a Garden", map[string]string{
				"garden.yaml":  readLocalFile(t, "garden/garden.yaml"),
				"secrets.yaml": emptySecrets("runtime", "garden-dns-local", "virtual-garden-etcd-main-backup-local"),
			}))
			handle, err := NewLandscapeClient(testServer.config, receiver.Key{Namespace: w.namespace, Name: s.name}, clock.RealClock{}, "me")
			require.NoError(t, err)
			require.NoError(t, handle.Approve(context.Background(), []string{held.Approval}, false))
			w.eventually("it passes by the approval", func() bool { return w.configMapValue("r1") == "" })
			l := w.getLandscape(s.name)
			assert.Equal(t, []string{held.Approval}, l.Status.UsedApprovals, "that is noted before it goes")
			assert.Equal(t, triggerApproval, l.Status.History[0].Trigger)
			if restart {
				stop()
				w.startOperator(func(r *Role) { r.Catalogue = smallCatalogue(t) })
			}
			reaches(s.push("again", map[string]string{"r1.yaml": s.configMap("r1", "2")}))
			require.Equal(t, "2", w.configMapValue("r1"))
			reaches(s.push("gone again", map[string]string{"r1.yaml": ""}))
			assert.Equal(t, "2", w.configMapValue("r1"), "nobody approved that it goes a second time")
			w.changeLandscape(s.name, func(l *landscapev1alpha1.Landscape) { l.Spec.Approved = append(l.Spec.Approved, held.Approval+"-2") })
			w.eventually("somebody has approved it now", func() bool { return w.configMapValue("r1") == "" })
		})
	}
}

// TestUseApproval: an approval allows nothing if another sync used it since, if it was withdrawn,
// or if its use cannot be recorded. Once recorded it counts until the sync ends.
func TestUseApproval(t *testing.T) {
	for name, test := range map[string]struct {
		approved, used []string
		noted          []string
		want           bool
	}{
		"noted by this sync":     {[]string{"a"}, []string{"a"}, []string{"a"}, true},
		"used since":             {[]string{"a"}, []string{"a"}, nil, false},
		"taken back":             {nil, nil, nil, false},
		"the use is not written": {[]string{"a"}, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &landscapeReconciler{operator: &runningOperator{role: &Role{Log: slog.New(slog.DiscardHandler)}}, object: &landscapev1alpha1.Landscape{}, status: &statusWriter{}}
			s.object.Spec.Approved, s.status.desired.UsedApprovals = test.approved, test.used
			assert.Equal(t, test.want, s.recordApprovalUse(&job{permissions: jobPermissions{usedApprovals: test.noted}}, "a"))
			assert.Equal(t, test.used, s.status.desired.UsedApprovals)
		})
	}
}
