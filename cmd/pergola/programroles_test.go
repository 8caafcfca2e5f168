// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWithRole(t *testing.T) {
	const config = ".config.gardener.cloud/v1alpha1\nkind: "
	for name, c := range map[string]struct {
		called  string
		args    []string // FILE is the path of the configuration file
		content string
		want    []string
		err     string
	}{
		"resource manager by its file": {"/usr/bin/pergola", []string{"--config=FILE"}, "apiVersion: resourcemanager" + config + "ResourceManagerConfiguration",
			[]string{"resource-manager", "--config=FILE"}, ""},
		"admission controller by its file": {"pergola", []string{"--config=FILE"}, "apiVersion: admissioncontroller" + config + "AdmissionControllerConfiguration",
			[]string{"admission-controller", "--config=FILE"}, ""},
		"value apart": {"pergola", []string{"--config", "FILE"}, "apiVersion: resourcemanager" + config + "ResourceManagerConfiguration",
			[]string{"resource-manager", "--config", "FILE"}, ""},
		"by its name":               {"/gardener-resource-manager", []string{"--config=FILE"}, "", []string{"resource-manager", "--config=FILE"}, ""},
		"by its name, no arguments": {"gardenlet", nil, "", []string{"gardenlet"}, ""},
		"by its name, flags":        {"/gardener-operator", []string{"--kubeconfig=k"}, "", []string{"operator", "--kubeconfig=k"}, ""},
		"a role is named":           {"/gardener-resource-manager", []string{"resource-manager", "--config=FILE"}, "", []string{"resource-manager", "--config=FILE"}, ""},
		"a command is named":        {"pergola", []string{"validate", "x"}, "", []string{"validate", "x"}, ""},
		"a command after a flag":    {"pergola", []string{"--no-color", "resource-manager", "--config=FILE"}, "", []string{"--no-color", "resource-manager", "--config=FILE"}, ""},
		"nothing":                   {"pergola", nil, "", nil, ""},
		"help":                      {"pergola", []string{"--help"}, "", []string{"--help"}, ""},
		"a mistyped command":        {"pergola", []string{"validat"}, "", []string{"validat"}, ""},
		"no such role yet": {"pergola", []string{"--config=FILE"}, "apiVersion: scheduler" + config + "SchedulerConfiguration", nil,
			"this version of Pergola has no role scheduler: leave the image of gardener-scheduler unchanged"},
		"flags in its place": {"pergola", []string{"--config=FILE"}, "apiVersion: gardenlet" + config + "GardenletConfiguration", nil,
			"the role gardenlet has flags instead of the configuration file of gardenlet: see pergola gardenlet --help"},
		"another kind":  {"pergola", []string{"--config=FILE"}, "apiVersion: v1\nkind: Config", nil, `has the kind "Config" of "v1", which no role reads`},
		"another group": {"pergola", []string{"--config=FILE"}, "apiVersion: example.org/v1\nkind: ResourceManagerConfiguration", nil, "which no role reads"},
		"no YAML":       {"pergola", []string{"--config=FILE"}, "a: [", nil, "find the role by the configuration file"},
		"no file":       {"pergola", []string{"--config=/does/not/exist"}, "", nil, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(file, []byte(c.content), 0o600))
			with := func(in []string) (out []string) {
				for _, arg := range in {
					switch arg {
					case "FILE":
						arg = file
					case "--config=FILE":
						arg = "--config=" + file
					}
					out = append(out, arg)
				}
				return out
			}
			got, err := withRole(newRoot(), c.called, with(c.args))
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, with(c.want), got)
		})
	}
}
