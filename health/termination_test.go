// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTerminationCause(t *testing.T) {
	usage := "Usage:\n  kube-controller-manager [flags]\n" + strings.Repeat("      --a-flag string   what it is for\n", 20)
	flags := "W1123 08:14:03.497890       1 feature_gate.go:861] \"Warning: SetEmulationVersion\"\nI1123 08:14:03.497890       1 flags.go:64] FLAG: --v=\"2\"\n" + strings.Repeat("x\n", 200)
	for name, test := range map[string]struct{ message, want string }{
		"short":                   {"no such file\nbye\n", "no such file\nbye"},
		"usage, then the error":   {usage + "\nError: unknown flag: --nonsense\n", "Error: unknown flag: --nonsense"},
		"the error, then usage":   {"Error: unknown flag: --nonsense\n" + usage, "Error: unknown flag: --nonsense"},
		"flags, then klog":        {flags + "E1123 08:16:26.680428       1 run.go:72] \"command failed\" err=\"forbidden\"\n", "E1123 08:16:26.680428       1 run.go:72] \"command failed\" err=\"forbidden\""},
		"the last of several":     {"Error: one\n" + usage + "Error: two\n", "Error: two"},
		"a structured log":        {usage + `{"level":"fatal","msg":"no space"}` + "\n", `{"level":"fatal","msg":"no space"}`},
		"a panic":                 {usage + "panic: nil map\n\ngoroutine 1 [running]:\n", "panic: nil map"},
		"no complaint":            {strings.Repeat("y", 400) + " and so it ends", "…" + strings.Repeat("y", maxForeignMessage-len("…")-len(" and so it ends")) + " and so it ends"},
		"not half of a character": {strings.Repeat("ü", 400), "…" + strings.Repeat("ü", 148)},
		"a flag is no complaint":  {strings.Repeat("I1123 x FLAG: --error-budget=1\n", 20) + "bye", ""},
	} {
		got := terminationCause(test.message)
		if test.want == "" {
			assert.True(t, strings.HasPrefix(got, "…") && strings.HasSuffix(got, "bye"), "%s: %s", name, got)
			continue
		}
		assert.Equal(t, test.want, got, name)
		assert.LessOrEqual(t, len(got), maxForeignMessage, name)
	}
}
