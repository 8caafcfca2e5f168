// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/hack/childprocess"
)

// testInvalidLandscape: every error of an invalid landscape is reported, and nothing is applied.
func testInvalidLandscape(t *testing.T, s *testStage) {
	versions := s.snapshot().fieldTimes()
	undo := []func(){
		s.editWithUndo("garden/garden.yaml", "eventTTL: ", "eventTTL: soon"),
		s.editWithUndo("projects/local/shoot.yaml", "purpose: evaluation", "purpose: fun"),
		s.editWithUndo("seeds/local.yaml", "spec:\n", "spec:\n  unheardOf: true\n"),
	}
	run := s.cli("apply", s.dir)
	assert.Equal(t, 1, run.run(t))
	for _, place := range []string{"garden/garden.yaml:", "projects/local/shoot.yaml:", "seeds/local.yaml:", "nothing was done"} {
		assert.Contains(t, run.stderr.String(), place)
	}
	for _, u := range undo {
		u()
	}
	assert.Equal(t, versions, s.snapshot().fieldTimes())
}

// testConcurrentRun: a second concurrent run is rejected, with the name of the lease holder.
func testConcurrentRun(t *testing.T, s *testStage) {
	c := s.newConverger()
	_, err := c.Apply(testContext(t))
	require.NoError(t, err)
	run := s.cli("apply", s.dir)
	started := time.Now()
	assert.Equal(t, 1, run.run(t))
	assert.Less(t, time.Since(started), waitTimeout, "it is refused, and does not wait")
	assert.Contains(t, run.stderr.String(), "held by itest")
	assert.Contains(t, run.stderr.String(), "cluster runtime")
	shown := s.cli("status", s.dir)
	assert.Equal(t, 0, shown.run(t))
	assert.Contains(t, shown.stdout.String(), s.Name()+" reconciles it.")
	c.Close()
	shown = s.cli("status", s.dir)
	assert.Equal(t, 0, shown.run(t))
	assert.Contains(t, shown.stdout.String(), "No process reconciles it")
	assert.Empty(t, s.leaseHolder(runtimeCluster, "gardener-operator-leader-election"), "the lease was given back")
	assert.Equal(t, 0, s.cli("apply", s.dir).run(t))
}

func (s *testStage) leaseHolder(cluster, name string) any {
	s.Helper()
	holder := fieldAt(s.get(s.resource(cluster, "coordination.k8s.io/v1", "leases", "garden"), name), "spec", "holderIdentity")
	if holder == nil {
		return ""
	}
	return holder
}

// testInterrupt: Ctrl-C ends a run soon (cmd/pergola measures the time). Inventories have all sent
// objects, and the next run may start at once.
func testInterrupt(t *testing.T, s *testStage) {
	undo := s.addFileWithUndo("components/garden/etcd-druid/kustomization.yaml", neverReadyPatch+`
resources: [extra.yaml]
`)
	undoFile := s.addFileWithUndo("components/garden/etcd-druid/extra.yaml", `
apiVersion: v1
kind: ConfigMap
metadata: {name: sent-before-the-end, namespace: garden}
data: {a: b}
`)
	run := s.cli("apply", s.dir, "--verbose")
	require.NoError(t, childprocess.Start(run.cmd))
	t.Cleanup(func() {
		if t.Failed() {
			_ = run.cmd.Process.Kill()
			t.Log(run.stdout.String(), run.stderr.String())
		}
	})
	eventually(t, "the run to wait for its pods", func() bool { return strings.Contains(run.stderr.String(), "ImagePullBackOff") })
	require.NoError(t, run.cmd.Process.Signal(os.Interrupt))
	started := time.Now()
	assert.Equal(t, 130, run.wait(t))
	assert.Less(t, time.Since(started), time.Minute, "the pods never get ready: it was the signal that ended it")
	assert.Contains(t, run.stderr.String(), "interrupted: the inventories record all sent objects")
	assert.True(t, s.inventoryObjects(s.snapshot())[runtimeCluster+": ConfigMap garden/sent-before-the-end"])

	// Also in the middle of the work, while nothing waits.
	for _, after := range []time.Duration{300 * time.Millisecond, 1500 * time.Millisecond} {
		run = s.cli("apply", s.dir)
		require.NoError(t, childprocess.Start(run.cmd))
		// an earlier signal would be handled by the kernel
		eventually(t, "the run to begin", func() bool { return strings.Contains(run.stderr.String(), "Applying ") })
		timer := time.NewTimer(after)
		<-timer.C
		require.NoError(t, run.cmd.Process.Signal(syscall.SIGTERM))
		assert.Equal(t, 130, run.wait(t))
	}
	assert.Empty(t, s.leaseHolder(runtimeCluster, "gardener-operator-leader-election"), "leases are given back")
	assert.Empty(t, s.leaseHolder(seedCluster, "gardenlet-leader-election"))

	undoFile()
	undo()
	_, c := s.mustApply()
	assert.Contains(t, c.writtenObjects(), "deleted ConfigMap garden/sent-before-the-end")
}

// testRemovedShoot: a commit that only removes a Shoot is held. The Shoot and its objects stay.
func testRemovedShoot(t *testing.T, s *testStage) {
	before := s.snapshot()
	text := s.read("projects/local/shoot.yaml")
	require.NoError(t, os.Remove(s.path("projects/local/shoot.yaml")))
	report, c := s.mustApply()
	require.Len(t, report.Held, 1)
	assert.Equal(t, virtualCluster, report.Held[0].Cluster)
	require.Len(t, report.Held[0].Objects, 1)
	assert.Equal(t, "Shoot garden-local/local", report.Held[0].Objects[0].Ref.String())
	assert.Contains(t, report.Held[0].Objects[0].Reason.String(), "put the file back")
	assert.Empty(t, report.Held[0].Approval, "no approval leads anywhere")
	p, _ := s.planWithoutWaiting()
	require.Len(t, p.Items, 1)
	assert.Equal(t, change.Hold, p.Items[0].Action)
	assert.Empty(t, c.writtenObjects())
	assert.Empty(t, before.without(s.snapshot()))
	run := s.cli("apply", s.dir)
	assert.Equal(t, 1, run.run(t), "the clusters are not as Git says")
	assert.Contains(t, run.stderr.String(), "held Shoot garden-local/local (landscape local, declarations): its file no longer exists")
	s.write("projects/local/shoot.yaml", text)
	report, c = s.mustApply()
	assert.Empty(t, report.Held)
	assert.Empty(t, c.writtenObjects())
}
