// SPDX-License-Identifier: Apache-2.0

package landscape

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestHolderText(t *testing.T) {
	for holder, want := range map[string]string{
		"pergola-operator-d945d8f77-ts988_pergola-operator_1_g8xv2": "pergola operator in pergola-operator-d945d8f77-ts988",
		"laptop_pergola-apply_4711_x2b4q":                           "pergola apply on laptop (process 4711)",
		"build_host_pergola-gardenlet_12_aaaaa":                     "pergola gardenlet on build_host (process 12)",
		"gardener-operator-7d-x_5b1c":                               "gardener-operator-7d-x_5b1c",
		"itest":                                                     "itest",
		"":                                                          "",
	} {
		assert.Equal(t, want, HolderText(holder))
	}
}
