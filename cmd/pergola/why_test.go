// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/commands/why"
)

func TestWhy(t *testing.T) {
	dir, commit := repository(t)
	replaceIn(t, dir, "seed.yaml", "region: local", "region: north")
	hash := commit()

	o := pergola(t, "why", dir, "Seed local.spec.provider.region", "--offline")
	require.Equal(t, 0, o.code, o.stderr)
	assert.Contains(t, o.stdout, "Seed local on cluster virtual: spec.provider.region\n  value    north\n  written  "+dir+"/seed.yaml:")
	assert.Contains(t, o.stdout, hash[:10]+" 1970-01-01, t: a change")

	replaceIn(t, dir, "seed.yaml", "region: north", "region: south")
	o = pergola(t, "why", dir, "Seed", "local.spec.provider.region", "--offline")
	assert.Contains(t, o.stdout, "not committed yet")

	answers := decode[[]why.Answer](t, pergola(t, "why", dir, "Namespace garden.metadata.labels[pod-security.kubernetes.io/enforce]", "--offline", "-o", "json"))
	require.Len(t, answers, 1)
	assert.Equal(t, "seed/namespace", answers[0].Component)
	assert.Equal(t, "privileged", answers[0].Value.Value)
	assert.Nil(t, answers[0].Live)
	require.Len(t, answers[0].WrittenAt, 1)
	assert.Equal(t, "components/seed/namespace/component.cue", answers[0].WrittenAt[0].File)

	o = pergola(t, "why", dir, "Seed locl.spec", "--offline")
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.stderr, "did you mean local?")
	assert.Equal(t, 2, pergola(t, "why", dir, "Seed", "--offline").code)
	assert.Equal(t, 2, pergola(t, "why", dir).code)

	o = pergola(t, "why", dir, "Seed local.spec.provider.region")
	assert.Equal(t, 0, o.code)
	assert.Contains(t, o.stdout, "no access to cluster virtual")
}

// TestWhyInAnUnreadableRepository: the message has the cause, not that there is no repository.
func TestWhyInAnUnreadableRepository(t *testing.T) {
	dir, _ := repository(t)
	config := filepath.Join(filepath.Dir(dir), ".git", "config")
	for extension, want := range map[string]string{"worktreeConfig = true": ", t: ", "objectFormat = sha256": "says that objects have SHA256 names", "newStore = x": "newStore=x"} {
		require.NoError(t, os.WriteFile(config, []byte("[core]\n\trepositoryformatversion = 1\n[extensions]\n\t"+extension+"\n"), 0o600))
		o := pergola(t, "why", dir, "Seed local.spec.provider.region", "--offline")
		require.Equal(t, 0, o.code, o.stderr)
		assert.Contains(t, o.stdout, want)
		assert.NotContains(t, o.stdout, "not in a Git repository")
	}
	require.NoError(t, os.Rename(filepath.Dir(config), filepath.Join(filepath.Dir(dir), "moved")))
	assert.Contains(t, pergola(t, "why", dir, "Seed local.spec.provider.region", "--offline").stdout, "not in a Git repository")
}
