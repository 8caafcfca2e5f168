// SPDX-License-Identifier: Apache-2.0

package adoption

// This file reads the intended differences from upstream.

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pergola-dev/pergola/change"
)

// deliberateDifferences are the intended differences from upstream, from
// render/testdata/corpus.yaml.
type deliberateDifferences []struct {
	Object, Path string
}

func readDeliberateDifferences(t *testing.T, root string) deliberateDifferences {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "render", "testdata", "corpus.yaml"))
	require.NoError(t, err)
	var file struct {
		Cases []struct {
			Component   string
			Differences deliberateDifferences
		}
	}
	require.NoError(t, yaml.Unmarshal(raw, &file))
	var out deliberateDifferences
	for _, c := range file.Cases {
		if strings.HasPrefix(c.Component, "garden/") {
			out = append(out, c.Differences...)
		}
	}
	require.NotEmpty(t, out)
	return out
}

var (
	keyOfMap = regexp.MustCompile(`\.(annotations|labels|data)\[([^\]]*)\]`)
	ofList   = regexp.MustCompile(`\[[^\]]*\]`)
)

// allows reports whether an object, KIND/NAMESPACE/NAME, may differ at a path. The corpus names
// list items by position and a report by name, so positions are ignored.
func (d deliberateDifferences) allows(object, path string) bool {
	plain := func(path string) string {
		return ofList.ReplaceAllString(keyOfMap.ReplaceAllString(path, ".$1.$2"), "")
	}
	path = plain("." + path)
	for _, one := range d {
		prefix, all := strings.CutSuffix(one.Object, "*")
		if one.Object != object && (!all || !strings.HasPrefix(object, prefix)) {
			continue
		}
		// A different name means a different item.
		if listed := plain(one.Path); strings.HasPrefix(path, listed) || listed == path+".name" {
			return true
		}
	}
	return false
}

// contentReference matches fields that contain the name of a ConfigMap or Secret with a hash.
var contentReference = regexp.MustCompile(`annotations\[reference\.resources\.gardener\.cloud/(configmap|secret)-|\.(configMap)\.name$|\.(secret)\.secretName$|\.annotations\[(checksum)/`)

// isReferenceChange reports whether a field only refers to a new name of an object whose content
// may differ.
func (d deliberateDifferences) isReferenceChange(namespace string, f change.Field) bool {
	if !contentReference.MatchString(f.Path) {
		return false
	}
	for _, value := range []any{f.Old, f.New} {
		name, is := value.(string)
		if value == nil || !is {
			continue
		}
		base := namespace + "/" + hashSuffix.ReplaceAllString(name, "-HASH")
		for _, kind := range []string{"ConfigMap/", "Secret/"} {
			if d.hasDifferences(kind + base) {
				return true
			}
		}
	}
	return false
}

// hasDifferences reports whether any field of an object may differ.
func (d deliberateDifferences) hasDifferences(object string) bool {
	return slices.ContainsFunc(d, func(one struct{ Object, Path string }) bool { return one.Object == object })
}

// reportedObjectKey returns the corpus key of an object in a report: KIND NAMESPACE/NAME.
func reportedObjectKey(object string) (key, namespace string) {
	kind, name, _ := strings.Cut(object, " ")
	namespace, rest, namespaced := strings.Cut(name, "/")
	if !namespaced {
		namespace, rest = "", name
	}
	return kind + "/" + namespace + "/" + hashSuffix.ReplaceAllString(rest, "-HASH"), namespace
}
