// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRaiseInotifyLimit(t *testing.T) {
	for name, c := range map[string]struct{ have, becomes, says string }{
		"too few":           {"128\n", "1024", "raised fs.inotify.max_user_instances from 128 to 1024"},
		"enough":            {"4096\n", "4096\n", ""},
		"what is no number": {"x", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "instances")
			require.NoError(t, os.WriteFile(file, []byte(c.have), 0o600))
			var out bytes.Buffer
			raiseInotifyLimit(file, &out)
			got, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, c.becomes, string(got))
			if c.says == "" {
				assert.Empty(t, out.String())
			} else {
				assert.Contains(t, out.String(), c.says)
			}
		})
	}
	var out bytes.Buffer
	raiseInotifyLimit(filepath.Join(t.TempDir(), "none"), &out)
	assert.Empty(t, out.String(), "another system has no such file")
}
