// SPDX-License-Identifier: Apache-2.0

package garbagecollector

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestReferences(t *testing.T) {
	const prefix = "reference.resources.gardener.cloud/"
	for name, test := range map[string]struct {
		key, value string
		want       references
	}{
		"secret":       {prefix + "secret-12345678", "a-1", references{{kindSecret, "ns", "a-1"}: {}}},
		"config map":   {prefix + "configmap-12345678", "a-1", references{{kindConfigMap, "ns", "a-1"}: {}}},
		"hash differs": {prefix + "secret-x", "a-1", references{{kindSecret, "ns", "a-1"}: {}}},
		"no hash":      {prefix + "secret", "a-1", references{}},
		"other kind":   {prefix + "service-12345678", "a-1", references{}},
		"no name":      {prefix + "secret-12345678", "", references{}},
		"other prefix": {"resources.gardener.cloud/secret-12345678", "a-1", references{}},
	} {
		t.Run(name, func(t *testing.T) {
			have := references{}
			have.add("ns", map[string]string{test.key: test.value})
			assert.Equal(t, test.want, have)
		})
	}
}

func TestFindNames(t *testing.T) {
	one, two := objectID{kind: kindSecret, name: "a-1"}, objectID{kind: kindConfigMap, name: "b-2"}
	names := map[string][]objectID{"a-1": {one}, "b-2": {two}}
	for name, test := range map[string]struct {
		value any
		want  []objectID
	}{
		"nothing":      {nil, nil},
		"deep":         {map[string]any{"volumes": []any{map[string]any{"secret": map[string]any{"secretName": "a-1"}}}}, []objectID{one}},
		"part of text": {[]any{"a-12", "xa-1", int64(1), true}, nil},
		"keys":         {map[string]any{"a-1": "x"}, nil},
		"both":         {[]any{"a-1", []any{"b-2"}}, []objectID{one, two}},
	} {
		t.Run(name, func(t *testing.T) {
			var have []objectID
			findNames(test.value, names, func(id objectID) { have = append(have, id) })
			assert.Equal(t, test.want, have)
		})
	}
}
