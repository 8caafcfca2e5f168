// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWithoutDump(t *testing.T) {
	long := strings.Repeat("Name:\"x\", ", 100)
	for in, want := range map[string]string{
		"Invalid value: core.PodTemplateSpec{" + long + "}: field is immutable": "Invalid value: field is immutable",
		"Invalid value: \"x\": field is immutable":                              "Invalid value: \"x\": field is immutable",
		"Required value":          "Required value",
		"Required value: " + long: "Required value: " + long,
	} {
		assert.Equal(t, want, withoutDump(in))
	}
}
