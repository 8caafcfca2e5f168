// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	all := map[string]string{}
	for _, n := range knownImages() {
		all[n.Executable] = "/bin/" + n.Executable
	}
	table, err := availableImages(all, map[string]string{"kube-apiserver": "v1.36.3", "kube-controller-manager": "v1.36.3", "kube-scheduler": "v1.36.3"})
	require.NoError(t, err)
	pattern, err := regexp.Compile(table.Pattern())
	require.NoError(t, err)
	for reference, want := range map[string]struct {
		executable string
		args       []string
		err        string
	}{
		"registry.k8s.io/kube-apiserver:v1.36.0":                                             {executable: "kube-apiserver"},
		"registry.k8s.io/kube-apiserver:v1.34.1":                                             {executable: "kube-apiserver", args: []string{"--emulated-version=1.34"}},
		"registry.k8s.io/kube-apiserver:v1.34.1@sha256:0123":                                 {executable: "kube-apiserver", args: []string{"--emulated-version=1.34"}},
		"localhost:5000/a/mirror/of/registry.k8s.io/kube-scheduler:v1.33.12":                 {executable: "kube-scheduler", args: []string{"--emulated-version=1.33"}},
		"kube-controller-manager:1.35":                                                       {executable: "kube-controller-manager", args: []string{"--emulated-version=1.35"}},
		"registry.k8s.io/kube-apiserver:v1.32.1":                                             {err: `can be 1.33 to 1.36, and not "v1.32.1"`},
		"registry.k8s.io/kube-apiserver:v1.37.0":                                             {err: "can be 1.33 to 1.36"},
		"registry.k8s.io/kube-apiserver:latest":                                              {err: `not "latest"`},
		"registry.k8s.io/kube-apiserver":                                                     {err: `not ""`},
		"gcr.io/etcd-development/etcd:v3.5.0":                                                {executable: "etcd"},
		"quay.io/coreos/etcd":                                                                {executable: "etcd"},
		"registry.example.org/a/pergola:v0.1.0":                                              {executable: "pergola"},
		"europe-docker.pkg.dev/gardener-project/releases/gardener/resource-manager:v1.150.0": {executable: "pergola"},
		"registry.example.org/notpergola:v0.1.0":                                             {err: "no executable for the image"},
		"registry.k8s.io/my-kube-apiserver:v1.36.0":                                          {err: "no executable for the image"},
		"registry.k8s.io/kube-apiserver/more:v1.36.0":                                        {err: "it has kube-apiserver, kube-controller-manager, kube-scheduler, etcd, pergola"},
		"europe-docker.pkg.dev/gardener-project/releases/gardener/etcd-druid:v0.3":           {err: "no executable for the image"},
	} {
		t.Run(reference, func(t *testing.T) {
			found, args, err := table.Find(reference)
			assert.Equal(t, want.err == "", pattern.MatchString(reference), "the pattern says the same")
			if want.err != "" {
				assert.ErrorContains(t, err, want.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, want.executable, found.Executable)
			assert.Equal(t, want.args, args)
		})
	}
	_, err = availableImages(all, map[string]string{"kube-apiserver": "master"})
	assert.ErrorContains(t, err, `"master" is not a version 1.x`)
	table, err = availableImages(map[string]string{"registry.example.org/team/mine": "/home/me/mine"}, nil)
	require.NoError(t, err)
	mine, _, err := table.Find("registry.example.org/team/mine:v0.1.0-dev")
	require.NoError(t, err)
	assert.Equal(t, []string{"registry.example.org/team/mine", "/mine"}, []string{mine.Executable, mine.Path})
	table, err = availableImages(map[string]string{"etcd": "/bin/etcd"}, nil)
	require.NoError(t, err)
	_, _, err = table.Find("registry.k8s.io/kube-apiserver:v1.36.0")
	assert.ErrorContains(t, err, "it has etcd")
	assert.NotRegexp(t, table.Pattern(), "registry.k8s.io/kube-apiserver:v1.36.0")
}

// TestNewTable gets the versions from executables.
func TestNewTable(t *testing.T) {
	server := filepath.Join(t.TempDir(), "server")
	require.NoError(t, os.WriteFile(server, []byte("#!/bin/sh\n[ \"$1\" = --version ] && echo Kubernetes v1.35.2\n"), 0o700))
	table, err := NewTable(t.Context(), map[string]string{"kube-apiserver": server, "etcd": "/nowhere", "kwok": "/nowhere"})
	require.NoError(t, err)
	found, args, err := table.Find("kube-apiserver:v1.32.0")
	require.NoError(t, err)
	assert.Equal(t, "v1.35.2", found.Version)
	assert.Equal(t, []string{"--emulated-version=1.32"}, args)
	_, err = NewTable(t.Context(), map[string]string{"kube-scheduler": "/nowhere"})
	assert.ErrorContains(t, err, "asking /nowhere for its version")
}
