// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"math"
	"path"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// InputDigest is the digest of everything that the components of an owner are rendered from, except
// the catalogue. With one catalogue, inputs of equal digests render to equal bytes.
type InputDigest [sha256.Size]byte

// undigestedFields are the fields of an Input that serve errors and people or select components,
// and are not rendered.
func undigestedFields() []string {
	return []string{"ChartsRequired", "DeclarationPosition", "DeclaredCredentials", "MutationChanges", "OnlyComponents", "DeclaredReferences"}
}

// DigestInput returns the digest of an input with its render options. It fails if an overlay cannot
// be read.
func DigestInput(in Input, opts Options) (InputDigest, error) {
	options, err := opts.digest(in.Owner.Kind)
	if err != nil {
		return InputDigest{}, err
	}
	return digestInput(in, options), nil
}

// digestInput visits all fields by reflection, so that new fields of Input count automatically.
func digestInput(in Input, options InputDigest) InputDigest {
	d := newDigester()
	d.add([sha256.Size]byte(options))
	v := reflect.ValueOf(in)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; !slices.Contains(undigestedFields(), name) {
			d.addText(name)
			d.addValue(v.Field(i))
		}
	}
	return d.sum()
}

// digest covers the options that matter for owners of a kind, without the catalogue.
func (o Options) digest(kind string) (InputDigest, error) {
	d := newDigester()
	counts := func(component string) bool { return path.Dir(component) == kind }
	for _, overlay := range o.Overlays {
		if !counts(overlay.Component) {
			continue
		}
		d.add("overlay", overlay.Component, overlay.Name)
		if err := overlay.addToDigest(d); err != nil {
			return InputDigest{}, err
		}
	}
	d.add("images", o.ImageOverrides)
	enabled := map[string]bool{}
	for component, on := range o.Enabled {
		if counts(component) {
			enabled[component] = on
		}
	}
	d.add("enabled", enabled, "only", o.OnlyComponents)
	return d.sum(), nil
}

// addToDigest adds the files of an overlay as its build gets them: the build cannot read anything
// else.
func (o Overlay) addToDigest(d *digester) error {
	memory := filesys.MakeFsInMemory()
	if err := copyInto(memory, o.FS, o.Dir, "/overlay"); err != nil {
		return fmt.Errorf("overlay %s: %w", o.Name, err)
	}
	return memory.Walk("/overlay", func(name string, info fs.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := memory.ReadFile(name)
		d.add(name, string(data))
		return err
	})
}

// digester encodes values so that different values have different encodings.
type digester struct{ hash hash.Hash }

func newDigester() *digester { return &digester{sha256.New()} }

func (d *digester) sum() InputDigest { return InputDigest(d.hash.Sum(nil)) }

func (d *digester) add(values ...any) {
	for _, v := range values {
		d.addValue(reflect.ValueOf(v))
	}
}

func (d *digester) addNumber(mark byte, n uint64) {
	var buffer [9]byte
	buffer[0] = mark
	binary.BigEndian.PutUint64(buffer[1:], n)
	d.hash.Write(buffer[:])
}

func (d *digester) addText(s string) {
	d.addNumber('s', uint64(len(s)))
	d.hash.Write([]byte(s))
}

// addValue encodes any plain value. As in CUE and Helm, integers differ from floats, and nil
// differs from empty.
func (d *digester) addValue(v reflect.Value) {
	if v.IsValid() && v.Type() == reflect.TypeFor[registryChartFiles]() {
		return // the digest of the chart covers them
	}
	switch v.Kind() {
	case reflect.Invalid:
		d.addNumber('n', 0)
	case reflect.Bool:
		n := uint64(0)
		if v.Bool() {
			n = 1
		}
		d.addNumber('b', n)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.addNumber('i', uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.addNumber('u', v.Uint())
	case reflect.Float32, reflect.Float64:
		d.addNumber('f', math.Float64bits(v.Float()))
	case reflect.String:
		d.addText(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			d.addNumber('n', 0)
			return
		}
		d.addValue(v.Elem())
	case reflect.Struct:
		d.addNumber('t', uint64(v.NumField()))
		for i := range v.NumField() {
			d.addText(v.Type().Field(i).Name)
			d.addValue(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.IsNil() {
			d.addNumber('n', 0)
			return
		}
		d.addNumber('l', uint64(v.Len()))
		for i := range v.Len() {
			d.addValue(v.Index(i))
		}
	case reflect.Map:
		d.addMap(v)
	default:
		panic(fmt.Sprintf("a value of type %s has no digest", v.Type()))
	}
}

// addMap encodes a map with string keys, sorted.
func (d *digester) addMap(v reflect.Value) {
	if v.IsNil() {
		d.addNumber('n', 0)
		return
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	d.addNumber('m', uint64(len(keys)))
	for _, key := range keys {
		d.addText(key.String())
		d.addValue(v.MapIndex(key))
	}
}

func sortedKinds[V any](m map[schema.GroupKind]V) []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(m), func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
}
