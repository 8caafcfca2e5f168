// SPDX-License-Identifier: Apache-2.0

package settingsfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type exampleSettings struct {
	metav1.TypeMeta `json:",inline"`
	Name            string         `json:"name"`
	Rate            float32        `json:"rate"`
	Server          map[string]int `json:"server"`
}

func (s *exampleSettings) Default() {
	if s.Name == "" {
		s.Name = "default"
	}
}

func (s *exampleSettings) Validate() field.ErrorList {
	if s.Name == "bad" {
		return field.ErrorList{field.Invalid(field.NewPath("name"), s.Name, "use another one")}
	}
	return nil
}

func TestRead(t *testing.T) {
	const head = "apiVersion: example.org/v1\nkind: Example\n"
	for name, c := range map[string]struct{ text, want string }{
		"defaults":      {"", ""},
		"all errors":    {"nme: a\nrate: fast\n", "config.yaml:3:1: nme: unknown field; did you mean name?\nconfig.yaml:4:7: rate: is \"fast\", and must be a number"},
		"too large":     {"rate: 1e100\n", "config.yaml:3:7: rate: is 1e100, and must be a number"},
		"a wrong value": {"name: bad\n", "config.yaml:3:7: name: Invalid value: \"bad\": use another one"},
		"merged fields": {"server: {<<: {a: 1, b: x}}\n", "config.yaml:3:24: server.b: is \"x\", and must be a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := read(t, head+c.text)
			if c.want != "" {
				require.Error(t, err)
				for line := range strings.SplitSeq(c.want, "\n") {
					assert.Contains(t, err.Error(), line)
				}
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "default", s.Name)
		})
	}
}

// TestMergesOfMerges reads a file whose merges repeat each other 2^40 times.
func TestMergesOfMerges(t *testing.T) {
	text := "apiVersion: example.org/v1\nkind: Example\nl0: &l0 {a: 1}\n"
	for i := 1; i <= 40; i++ {
		text += fmt.Sprintf("l%d: &l%d {<<: [*l%d, *l%d]}\n", i, i, i-1, i-1)
	}
	_, err := read(t, text+"server: {<<: *l40}\n")
	require.ErrorContains(t, err, "config.yaml:3:1: l0: unknown field")
}

func read(t *testing.T, text string) (*exampleSettings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	s := &exampleSettings{}
	return s, Read(path, metav1.TypeMeta{APIVersion: "example.org/v1", Kind: "Example"}, s)
}
