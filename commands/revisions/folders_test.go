// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRenamedFolders(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want map[string]string }{
		"renamed":        {map[string]string{"a": "x", "b": "y"}, map[string]string{"c": "x", "b": "y"}, map[string]string{"c": "a"}},
		"copied":         {map[string]string{"a": "x"}, map[string]string{"a": "x", "c": "x"}, map[string]string{}},
		"another name":   {map[string]string{"a": "x"}, map[string]string{"c": "y"}, map[string]string{}},
		"two of a name":  {map[string]string{"a": "x", "b": "x"}, map[string]string{"c": "x"}, map[string]string{}},
		"made two":       {map[string]string{"a": "x"}, map[string]string{"c": "x", "d": "x"}, map[string]string{}},
		"without a name": {map[string]string{"a": ""}, map[string]string{"c": ""}, map[string]string{}},
		"exchanged":      {map[string]string{"a": "x", "b": "y"}, map[string]string{"a": "y", "b": "x"}, map[string]string{}},
	} {
		assert.Equal(t, c.want, RenamedFolders(c.before, c.after), name)
	}
}
