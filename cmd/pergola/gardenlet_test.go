// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestGardenletSettings: invalid flags are rejected before the first request to a cluster.
func TestGardenletSettings(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"nothing":    {nil, `--seed (name of the Seed) is missing: pergola gardenlet --seed NAME `},
		"no access":  {[]string{"--seed", "s"}, "at least one of the flags in the group [garden-kubeconfig-secret garden-kubeconfig] is required"},
		"two":        {[]string{"--seed", "s", "--garden-kubeconfig", none, "--garden-kubeconfig-secret", "a/b"}, "none of the others can be"},
		"secret":     {[]string{"--seed", "s", "--garden-kubeconfig-secret", "b"}, `--garden-kubeconfig-secret: "b" is not NAMESPACE/NAME of a Secret`},
		"level":      {[]string{"--seed", "s", "--garden-kubeconfig", none, "--log-level", "loud"}, `--log-level "loud": want one of info, debug, error`},
		"format":     {[]string{"--seed", "s", "--garden-kubeconfig", none, "--log-format", "xml"}, `--log-format "xml": want one of json, text`},
		"kubeconfig": {[]string{"--seed", "s", "--garden-kubeconfig", none}, "access to the garden cluster, kubeconfig"},
		"name":       {[]string{"--seed", "Not A Name", "--garden-kubeconfig", none}, `--seed: "Not A Name" is not a valid name of a Seed`},
	} {
		t.Run(name, func(t *testing.T) {
			o := pergola(t, append([]string{"gardenlet"}, test.args...)...)
			assert.Equal(t, 2, o.code)
			assert.Contains(t, o.stderr, test.want)
		})
	}
}
