// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/plan"
)

// TestDiffOfHibernation: a cluster stops when it hibernates and starts when it wakes up. Neither is
// a restart, and its etcd members do not roll.
func TestDiffOfHibernation(t *testing.T) {
	dir, commit := repositoryWithShoot(t)
	replaceIn(t, dir, "shoot.yaml", "spec:\n", "spec:\n  hibernation:\n    enabled: true\n")
	o := pergola(t, "diff", dir, "-o", "markdown")
	require.Equal(t, 1, o.code, "%+v", o)
	seen := visibleTableRows(o.stdout)
	assert.Equal(t, []string{"etcd-events, etcd-main, kube-apiserver, kube-controller-manager, kube-scheduler | local | shoot garden-local/local"}, seen["Control planes that stop"])
	assert.Empty(t, seen["Control planes that restart"])
	assert.Contains(t, seen["Effects besides the changes"], "hibernates the cluster: its nodes and its control plane stop | virtual | Shoot garden-local/local")
	assert.NotContains(t, o.stdout, "may roll")
	assert.NotContains(t, o.stdout, "restart")
	commit()

	replaceIn(t, dir, "shoot.yaml", "enabled: true", "enabled: false")
	o = pergola(t, "diff", dir, "-o", "json")
	require.Equal(t, 1, o.code, "%+v", o)
	p := decode[struct{ ControlPlanes []plan.ControlPlane }](t, o)
	require.Len(t, p.ControlPlanes, 1)
	assert.Subset(t, p.ControlPlanes[0].Starts, []string{"etcd-events", "etcd-main", "kube-controller-manager", "kube-scheduler"})
	assert.Empty(t, p.ControlPlanes[0].Parts)
	assert.Empty(t, p.ControlPlanes[0].Stops)
	assert.Contains(t, o.stdout, "wakes the cluster up: its control plane and its nodes start")
	assert.NotContains(t, o.stdout, "may roll")
}

// TestDiffOfRemovedComponent: the line about a removed component is cut off and begins with its
// workloads.
func TestDiffOfRemovedComponent(t *testing.T) {
	dir, _ := repositoryWithShoot(t)
	replaceIn(t, dir, "garden.yaml", "      verticalPodAutoscaler:\n        enabled: true\n", "      verticalPodAutoscaler:\n        enabled: false\n")
	o := pergola(t, "diff", dir)
	require.Equal(t, 1, o.code, "%+v", o)
	const first = "Deployment garden/vpa-admission-controller, Deployment garden/vpa-recommender, Deployment garden/vpa-updater, "
	assert.Contains(t, o.stdout, "  ! is deleted, on runtime: "+first, "and then the rest")
	o = pergola(t, "diff", dir, "-o", "markdown")
	assert.Contains(t, o.stdout, "| is deleted | runtime | "+first)
	at := func(text string) int { return strings.Index(o.stdout, text) }
	assert.Less(t, at("- delete Deployment garden/vpa-updater"), at("- delete ClusterRole "), "in the changes, too")
}
