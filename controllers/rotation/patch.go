// SPDX-License-Identifier: Apache-2.0

package rotation

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/util/sets"

	gardencorev1beta1 "github.com/pergola-dev/pergola/api/core/v1beta1"
)

// removableFields are the fields of a Rotation that a merge patch has to remove explicitly.
var removableFields = []string{"lastInitiationFinishedTime", "lastCompletionTriggeredTime", "autoCompleteAfterPrepared"}

// Patch returns a merge patch of the status from one state to another, or nil if they are equal. It
// leaves fields that others have added.
func Patch(before, after State) map[string]any {
	rotations, out := map[string]any{}, map[string]any{}
	for kind, r := range after.Rotation {
		if was, had := before.Rotation[kind]; had && reflect.DeepEqual(was, r) {
			continue
		}
		fields := fieldsOf(r)
		if _, had := before.Rotation[kind]; had {
			for _, name := range removableFields {
				if _, has := fields[name]; !has {
					fields[name] = nil
				}
			}
		}
		rotations[string(kind)] = fields
	}
	if len(rotations) > 0 {
		out["rotation"] = rotations
	}
	if after.EncryptionAtRest != nil && !reflect.DeepEqual(before.EncryptionAtRest, after.EncryptionAtRest) {
		out["encryptionAtRest"] = map[string]any{
			"resources": after.EncryptionAtRest.Resources, "provider": map[string]any{"type": after.EncryptionAtRest.Provider.Type},
		}
	}
	if len(out) == 0 {
		return nil
	}
	return map[string]any{"credentials": out}
}

func fieldsOf(r Rotation) map[string]any {
	var out map[string]any
	raw, _ := json.Marshal(r) // strings, times and a bool
	_ = json.Unmarshal(raw, &out)
	return out
}

// IsSameEncryption reports whether the same resources are encrypted in the same way.
func IsSameEncryption(a *gardencorev1beta1.EncryptionAtRest, b gardencorev1beta1.EncryptionAtRest) bool {
	return a != nil && a.Provider.Type == b.Provider.Type && sets.New(a.Resources...).Equal(sets.New(b.Resources...))
}
