// SPDX-License-Identifier: Apache-2.0

package suggest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestClosest(t *testing.T) {
	for name, test := range map[string]struct {
		word       string
		candidates []string
		limit      int
		want       string
	}{
		"another case first":         {"Replicas", []string{"replica", "replicas"}, 2, "replicas"},
		"swapped letters":            {"relpicas", []string{"replicas"}, 1, "replicas"},
		"the first of two by name":   {"cat", []string{"rat", "bat"}, 1, "bat"},
		"the closer one":             {"images", []string{"imag", "image"}, 2, "image"},
		"as long as the limit":       {"abc", []string{"abcde"}, 2, "abcde"},
		"longer than the limit":      {"abc", []string{"abcdef"}, 2, ""},
		"too far":                    {"spec", []string{"status"}, 2, ""},
		"nothing to choose from":     {"spec", nil, 2, ""},
		"empty candidates are words": {"a", []string{""}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, ClosestWithin(test.word, test.candidates, test.limit)) })
	}
	assert.Equal(t, "image", Closest("imag", []string{"name", "image"}))
	assert.Empty(t, Closest("imag", []string{"args", "command"}))
}
