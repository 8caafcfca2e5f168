// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestArgumentErrors: an error names the missing or surplus argument as the usage line does.
func TestArgumentErrors(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"validate"}, "PATH is missing: pergola validate PATH… [flags]; "},
		{[]string{"render"}, "LANDSCAPE is missing: pergola render LANDSCAPE [flags]; "},
		{[]string{"diff"}, "LANDSCAPE is missing: pergola diff LANDSCAPE… [flags]; "},
		{[]string{"apply", "a", "b"}, `"b" is one argument too many: pergola apply LANDSCAPE [flags]; `},
		{[]string{"operate", "a"}, "OBJECT is missing: pergola operate LANDSCAPE OBJECT OPERATION [flags]; "},
		{[]string{"operate", "a", "b", "c", "d", "e"}, `"d" is one argument too many: pergola operate `},
		{[]string{"why", "a"}, "KIND is missing: pergola why LANDSCAPE KIND "},
		{[]string{"explain", "Shoot", "Seed"}, `"Seed" is one argument too many: pergola explain `},
		{[]string{"approve", "local"}, "ID is missing: pergola approve LANDSCAPE ID... [flags]; "},
		{[]string{"version", "now"}, `"now" is one argument too many: pergola version [flags]; `},
		{[]string{"restore"}, "LANDSCAPE is missing: pergola restore LANDSCAPE --from FILE [flags]; "},
	} {
		o := pergola(t, test.args...)
		assert.Equal(t, 2, o.code, test.args)
		assert.Contains(t, o.stderr, "Error: "+test.want, test.args)
		assert.Contains(t, o.stderr, "pergola "+test.args[0]+" --help has examples", test.args)
	}
}

// TestRequiredFlags: an error names the missing flags and their purpose.
func TestRequiredFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"backup", "l"}, "--to (file to write; an existing file is replaced) is missing: pergola backup LANDSCAPE --to FILE [flags]; pergola backup --help has examples"},
		{[]string{"backup", "l", "--cluster", "runtime"}, "--to (file to write; "},
		{[]string{"restore", "l", "--dry-run"}, "--from (the backup) is missing: pergola restore LANDSCAPE --from FILE [flags]; pergola restore --help has examples"},
		{[]string{"comment"}, "--provider (forge: "},
		{[]string{"gardenlet", "--garden-kubeconfig", "x"}, "--seed (name of the Seed) is missing: "},
		{[]string{"gardenlet", "--seed", "x"}, "[flags]; pergola gardenlet --help has examples"},
		{[]string{"adopt", "l", "--stop", "--undo"}, "pergola adopt --help has examples"},
		{[]string{"hook", "post-receive", "--url", "https://x"}, "--landscape (Landscape to sync, and its receiver; may be given several times), --token-file (file with the token of the receivers) are missing: "},
	} {
		o := pergola(t, test.args...)
		assert.Equal(t, 2, o.code, test.args)
		assert.Contains(t, o.stderr, test.want, test.args)
		assert.NotContains(t, o.stderr, "required flag(s)", test.args)
	}
}

// TestAgeKeys: an error about sops keys names the environment variable and shows no key.
func TestAgeKeys(t *testing.T) {
	dir := t.TempDir()
	smallLandscape(t, dir)
	root := t.TempDir()
	writeFile(t, root, "garbage", "# a key\nnothing\n")
	for _, test := range []struct{ variable, value, want string }{
		{envAgeKeyFile, root + "/nope", "SOPS_AGE_KEY_FILE: file " + root + "/nope does not exist; set the variable to a file with age keys, or unset it"},
		{envAgeKeyFile, root, "SOPS_AGE_KEY_FILE: read " + root + ": is a directory"},
		{envAgeKeyFile, root + "/garbage", "SOPS_AGE_KEY_FILE: " + root + "/garbage: line 2 is not an age key; a key begins with AGE-SECRET-KEY-1"},
		{envAgeKey, "nothing", "SOPS_AGE_KEY: line 1 is not an age key; a key begins with AGE-SECRET-KEY-1"},
		{envAgeKey, "AGE-SECRET-KEY-1HIDDEN", "SOPS_AGE_KEY: line 1 is not an age key"},
		{envAgeKey, "age1qqqq", "SOPS_AGE_KEY: line 1 is not an age key"},
	} {
		t.Run(test.value, func(t *testing.T) {
			t.Setenv(test.variable, test.value)
			for _, command := range []string{"validate", "render", "apply"} {
				o := pergola(t, command, dir)
				assert.Equal(t, 2, o.code)
				assert.Contains(t, o.stderr, "Error: "+test.want)
				assert.NotContains(t, o.stderr, "HIDDEN")
			}
		})
	}
}
