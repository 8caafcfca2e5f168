// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"math"
	"slices"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/cuecontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/hack/testselection"
	"github.com/pergola-dev/pergola/schemas/fieldpath"
	"github.com/pergola-dev/pergola/schemas/structure"
)

// sampleValues are values of every type. For every field, some are wrong.
var sampleValues = []any{
	"", "zero!", "1h", "2020-01-31T08:00:00Z", "10Gi", int64(0), int64(-1), int64(1) << 40, 0.5, true,
	1e19, -1e26, "220000+0100", "50%",
	[]any{}, []any{"x"}, []any{map[string]any{"nmae": "x"}}, map[string]any{}, map[string]any{"nmae": "x"},
}

// TestCUEAndGoStructureAgree puts samples at every field of every kind. The CUE base and
// the checker that makes the messages come from the same nodes. They must agree at every field: CUE
// rejects exactly what the checker has a message for.
func TestCUEAndGoStructureAgree(t *testing.T) {
	s, err := embeddedSources()
	require.NoError(t, err)
	for _, kind := range allKinds(t, s) {
		if !testselection.HasPart(t, kind.GVK.Kind) {
			continue
		}
		t.Run(kind.GVK.Kind, func(t *testing.T) {
			t.Parallel()
			ctx := cuecontext.New()
			base, err := s.compileBase(ctx, kind)
			require.NoError(t, err)
			compared, refused, paths := 0, 0, schemaFieldPaths(kind.Root, nil)
			for i, path := range paths {
				if i%100 == 99 { // a CUE context never shrinks
					ctx = cuecontext.New()
					base, err = s.compileBase(ctx, kind)
					require.NoError(t, err)
				}
				for _, sample := range samplesFor(i, kind.Root.Lookup(path)) {
					object, _ := kind.Normalise(objectWithValue(path, sample).(map[string]any))
					inWords := slices.ContainsFunc(kind.Check(object), func(f structure.Finding) bool { return isWithinPath(path.String(), f.Path.String()) })
					inCUE := false
					if err := base.Unify(ctx.Encode(object)).Validate(cue.Concrete(true)); err != nil {
						inCUE = slices.ContainsFunc(cueErrorPaths(kind, err), func(p string) bool { return isWithinPath(path.String(), p) })
					}
					compared++
					if inCUE {
						refused++
					}
					if !assert.Equal(t, inWords, inCUE, "%s = %#v: refused in words: %v, in CUE: %v", path, sample, inWords, inCUE) {
						return
					}
				}
			}
			t.Logf("%d values at %d fields, %d refused by both", compared, len(paths), refused)
			assert.NotZero(t, refused)
		})
	}
}

// schemaFieldPaths lists all fields of a schema, with one key for maps and the first item for
// lists.
func schemaFieldPaths(n *structure.Node, path fieldpath.Path) []fieldpath.Path {
	paths := []fieldpath.Path{}
	if len(path) > 0 {
		paths = append(paths, path)
	}
	for _, name := range n.FieldNames() {
		if len(path) > 0 || name != "status" && (name != "metadata" || n.Properties["kind"].Enum[0] == "Shoot") {
			paths = append(paths, schemaFieldPaths(n.Properties[name], path.Append(name))...)
		}
	}
	if n.Additional != nil {
		paths = append(paths, schemaFieldPaths(n.Additional, path.Append(fieldpath.Key("a.b/c")))...)
	}
	if n.Items != nil {
		paths = append(paths, schemaFieldPaths(n.Items, path.Append(0))...)
	}
	return paths
}

// objectWithValue returns the smallest object with a value at a path.
func objectWithValue(path fieldpath.Path, value any) any {
	if len(path) == 0 {
		return value
	}
	if _, ok := path[0].(int); ok {
		return []any{objectWithValue(path[1:], value)}
	}
	return map[string]any{fieldpath.StepName(path[0]): objectWithValue(path[1:], value)}
}

// formatSamples are edge cases of the formats: right, wrong, and values on which readers differ.
var formatSamples = map[string][]any{
	"date-time": {"2020-01-31T08:00:00.123Z", "2020-01-31T08:00:00+01:00", "2020-01-31t08:00:00z", "2020-01-31 08:00:00Z", "2020-13-31T08:00:00Z", "2020-01-31T24:00:00Z"},
	"duration":  {"1h30m", "-1h", "1.5h", "0", "1", "1d", " 1h", "1h 30m"},
	"cidr": {"10.0.0.0/8", "10.1.2.3/8", "10.0.0.0", "10.0.0.0/33", "010.0.0.0/8", "10.0.0.0/08", "10.0.0.0/+8", "::/0", "2001:db8::/32", "::ffff:1.2.3.4/120",
		"fe80::1%eth0/64", "10.0.0.0/8 ", "10.0.0.0/-1", "256.0.0.0/8"},
	"byte":  {"aGk=", "aGk", "aGkx", "aGk=\n", "a Gk=", "%%%%", "aGk-", "aGk=aGk=", "====", "a\r\nGk="},
	"ipv4":  {"10.0.0.1", "10.0.0.1/8", "::1", "::ffff:1.2.3.4", "010.0.0.1"},
	"ipv6":  {"10.0.0.1", "::1", "2001:db8::1", "::ffff:1.2.3.4", "::g"},
	"int32": {int64(math.MaxInt32), int64(math.MaxInt32) + 1, int64(math.MinInt32) - 1},
	"int64": {int64(math.MaxInt64), 9.3e18, -9.3e18},
}

// samplesFor returns a third of the samples, another third for each field, and the values of the
// field's format and enum.
func samplesFor(field int, n *structure.Node) []any {
	var values []any
	for i := field % 3; i < len(sampleValues); i += 3 {
		values = append(values, sampleValues[i])
	}
	values = append(values, formatSamples[n.Format]...)
	for _, value := range n.Enum {
		values = append(values, value)
	}
	return values
}
