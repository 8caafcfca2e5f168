// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pergola-dev/pergola/hack/local/hold"
	"github.com/pergola-dev/pergola/hack/local/statedir"
)

// TestClustersKeepPodMode checks that clusters cannot switch between kwok and kubelets.
func TestClustersKeepPodMode(t *testing.T) {
	played, living := &statedir.State{}, &statedir.State{Living: true}
	played.Add("one")
	living.Add("one")
	possible := hold.CheckSupport()
	for _, test := range []struct {
		pods  string
		state *statedir.State
		want  bool
		err   string
	}{
		{"play", &statedir.State{}, false, ""},
		{"play", played, false, ""},
		{"play", living, false, "make local-clean"},
		{"run", played, false, "make local-clean"},
		{"auto", played, false, ""},
		{"auto", living, true, ""},
		{"auto", &statedir.State{}, possible == nil, ""},
		{"some", played, false, "use run, play or auto"},
	} {
		got, err := hasLivingPods(test.pods, test.state)
		assert.Equal(t, test.want, got, "%+v", test)
		if test.err == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, test.err)
		}
	}
	got, err := hasLivingPods("run", &statedir.State{})
	assert.Equal(t, possible == nil, got)
	assert.Equal(t, possible, err)
}
