// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"slices"
	"strings"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
	operatorv1alpha1 "github.com/pergola-dev/pergola/api/operator/v1alpha1"
)

// ownerKinds are the owners.
var ownerKinds = []reflect.Type{reflect.TypeFor[operatorv1alpha1.Garden](), reflect.TypeFor[gardencorev1beta1.Seed](), reflect.TypeFor[gardencorev1beta1.Shoot]()}

// upstreamReaders are fields that upstream programs of the catalogue read, whose sources are
// elsewhere.
var upstreamReaders = map[string]string{
	"spec.settings.scheduling.visible":          "gardener-scheduler",
	"spec.maintenance.confineSpecUpdateRollout": "gardener-controller-manager",
}

// apiPackagePrefix is the prefix of API packages. Fields with types of other packages, such as
// tolerations, count as a whole.
const apiPackagePrefix = "github.com/pergola-dev/pergola/api/"

// unreadFields returns the topmost fields of a kind's spec that nothing reads.
func (s sourceReads) unreadFields(kind reflect.Type) []string {
	spec, _ := kind.FieldByName("Spec")
	var out []string
	var walk func(at []string, t reflect.Type, within []reflect.Type)
	walk = func(at []string, t reflect.Type, within []reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), apiPackagePrefix) || slices.Contains(within, t) {
			return
		}
		within = append(slices.Clone(within), t)
		for i := range t.NumField() {
			field := t.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				walk(at, field.Type, within)
				continue
			}
			here := append(slices.Clone(at), name)
			read, whole := s.isRead(at[len(at)-1], name, field.Name)
			switch {
			case upstreamReaders[strings.Join(here, ".")] != "":
			case !read:
				out = append(out, strings.Join(here, "."))
			case !whole:
				walk(here, field.Type, within)
			}
		}
	}
	walk([]string{"spec"}, spec.Type, nil)
	slices.Sort(out)
	return out
}
