package adoption

// The differences from upstream that are wanted, against which a check is held.

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

// deliberate are the differences from upstream that are wanted, as render/testdata/corpus.yaml has
// them.
type deliberate []struct {
	Object, Path string
}

func readDeliberate(t *testing.T, root string) deliberate {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "render", "testdata", "corpus.yaml"))
	require.NoError(t, err)
	var file struct {
		Cases []struct {
			Component   string
			Differences deliberate
		}
	}
	require.NoError(t, yaml.Unmarshal(raw, &file))
	var out deliberate
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

// allows tells whether an object, KIND/NAMESPACE/NAME, may differ at a path. The list names an item
// of a list by its position and a report by its name, so which item it is does not count.
func (d deliberate) allows(object, path string) bool {
	plain := func(path string) string {
		return ofList.ReplaceAllString(keyOfMap.ReplaceAllString(path, ".$1.$2"), "")
	}
	path = plain("." + path)
	for _, one := range d {
		prefix, all := strings.CutSuffix(one.Object, "*")
		if one.Object != object && (!all || !strings.HasPrefix(object, prefix)) {
			continue
		}
		// Where the name of an item differs, it is another item.
		if listed := plain(one.Path); strings.HasPrefix(path, listed) || listed == path+".name" {
			return true
		}
	}
	return false
}

// reference is a field by which an object names a ConfigMap or Secret with the hash of its content.
var reference = regexp.MustCompile(`annotations\[reference\.resources\.gardener\.cloud/(configmap|secret)-|\.(configMap)\.name$|\.(secret)\.secretName$|\.annotations\[(checksum)/`)

// follows tells whether a field only has another name of something that may have another content.
func (d deliberate) follows(namespace string, f change.Field) bool {
	if !reference.MatchString(f.Path) {
		return false
	}
	for _, value := range []any{f.Old, f.New} {
		name, is := value.(string)
		if value == nil || !is {
			continue
		}
		base := namespace + "/" + hashSuffix.ReplaceAllString(name, "-HASH")
		for _, kind := range []string{"ConfigMap/", "Secret/"} {
			if d.differs(kind + base) {
				return true
			}
		}
	}
	return false
}

// differs tells whether anything of an object may differ.
func (d deliberate) differs(object string) bool {
	return slices.ContainsFunc(d, func(one struct{ Object, Path string }) bool { return one.Object == object })
}

// keyNamed is the key of an object that a report names: KIND NAMESPACE/NAME.
func keyNamed(object string) (key, namespace string) {
	kind, name, _ := strings.Cut(object, " ")
	namespace, rest, namespaced := strings.Cut(name, "/")
	if !namespaced {
		namespace, rest = "", name
	}
	return kind + "/" + namespace + "/" + hashSuffix.ReplaceAllString(rest, "-HASH"), namespace
}
