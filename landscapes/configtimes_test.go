// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTimesOfLandscapes: validation finds times that the operator would refuse.
func TestTimesOfLandscapes(t *testing.T) {
	for name, test := range map[string]struct{ spec, want string }{
		"right":              {"  timeout: 30m\n  windows:\n  - {schedule: \"0 8 * * 1-5\", duration: 8h, timeZone: Europe/Berlin}\n  - {schedule: \"@daily\", duration: 1h}\n", ""},
		"a leap day":         {"  windows:\n  - {schedule: \"0 8 29 2 *\", duration: 8h}\n", ""},
		"one of them opens":  {"  windows:\n  - {schedule: \"0 8 30 2 *\", duration: 8h}\n  - {schedule: \"0 8 1 2 *\", duration: 8h}\n", ""},
		"words":              {"  windows:\n  - {schedule: every day, duration: 8h}\n", `6:16: error: Landscape test: spec.windows[0].schedule: "every day": expected exactly 5 fields, found 2: [every day]; write minute, hour, day of the month, month and day of the week, such as "0 8 * * 1-5" [landscape/config]`},
		"an hour that is no": {"  windows:\n  - {schedule: \"0 25 * * *\", duration: 8h}\n", `6:16: error: Landscape test: spec.windows[0].schedule: "0 25 * * *": end of range (25) above maximum (23): 25; write`},
		"no times of day":    {"  windows:\n  - {schedule: \"@every 1h\", duration: 8h}\n", `spec.windows[0].schedule: "@every 1h": it has no times of day`},
		"a zone of nowhere":  {"  windows:\n  - {schedule: \"0 8 * * *\", duration: 8h, timeZone: Europe/Berlinn}\n", `6:53: error: Landscape test: spec.windows[0].timeZone: "Europe/Berlinn": no zone of that name is known; write one such as Europe/Berlin [landscape/config]`},
		"no duration":        {"  windows:\n  - {schedule: \"0 8 * * *\", duration: 0s}\n", `6:39: error: Landscape test: spec.windows[0].duration: "0s": want more than 0, such as 8h [landscape/config]`},
		"no day":             {"  windows:\n  - {schedule: \"0 8 30 2 *\", duration: 8h}\n", `spec.windows: none of them ever opens`},
		"a negative timeout": {"  timeout: -1h\n", `5:12: error: Landscape test: spec.timeout: must be more than 0, such as 1h [landscape/config]`},
		"a short timeout":    {"  timeout: 10s\n", `5:12: warning: Landscape test: spec.timeout: is less than a minute, too short for objects to become healthy, so each sync would fail; write a time such as 1h [landscape/config]`},
		"a timeout that may": {"  timeout: 1m\n", ""},
		"seconds":            {"  windows:\n  - {schedule: \"0 8 * * *\", duration: 8s}\n", `6:39: warning: Landscape test: spec.windows[0].duration: 8s is less than a minute, so a new revision hardly ever arrives in time; write how long the window is open, such as 8h [landscape/config]`},
		"each minute":        {"  windows:\n  - {schedule: \"* 8 * * *\", duration: 8h}\n", `6:16: warning: Landscape test: spec.windows[0].schedule: "* 8 * * *" reopens the window each minute, so it closes 8h0m0s after the last one; write one opening minute, such as "0 8 * * 1-5" [landscape/config]`},
		"always":             {"  windows:\n  - {schedule: \"0 8 * * *\", duration: 24h}\n", `6:5: warning: Landscape test: spec.windows[0]: is always open: it opens again before its 24h0m0s are over; shorten the duration, or remove spec.windows [landscape/config]`},
		"always, by hours":   {"  windows:\n  - {schedule: \"@hourly\", duration: 2h}\n", `spec.windows[0]: is always open`},
		"not on Sundays":     {"  windows:\n  - {schedule: \"0 * * * 1-6\", duration: 2h}\n", ""},
		"nearly always":      {"  windows:\n  - {schedule: \"0 8 * * *\", duration: 23h59m}\n", ""},
		"each ten minutes":   {"  windows:\n  - {schedule: \"*/10 8 * * *\", duration: 5m}\n", ""},
		"left to the schema": {"  windows:\n  - {schedule: \"0 8 * * *\"}\n", ""},
		"a number":           {"  windows:\n  - {schedule: 8, duration: 8h}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, violations, err := LoadFS(t.Context(), tree(map[string]string{"landscape.yaml": withSpec(test.spec)}), ".", Options{})
			require.NoError(t, err)
			if test.want == "" {
				assert.Empty(t, violations)
				return
			}
			require.Len(t, violations, 1, "%v", violations)
			assert.Contains(t, violations[0].String(), test.want)
		})
	}
}

// TestGatesOfLandscapes: RemoveVali has an effect only with VictoriaLogsBackend.
func TestGatesOfLandscapes(t *testing.T) {
	for gates, want := range map[string]string{
		"{RemoveVali: true, VictoriaLogsBackend: true}":  "",
		"{VictoriaLogsBackend: true}":                    "",
		"{RemoveVali: false}":                            "",
		"{RemoveVali: true}":                             `5:30: warning: Landscape test: spec.featureGates.RemoveVali: has no effect without VictoriaLogsBackend`,
		"{RemoveVali: true, VictoriaLogsBackend: false}": `warning: Landscape test: spec.featureGates.RemoveVali: has no effect without VictoriaLogsBackend`,
	} {
		_, violations, err := LoadFS(t.Context(), tree(map[string]string{"landscape.yaml": withSpec("  featureGates: " + gates + "\n")}), ".", Options{})
		require.NoError(t, err)
		if want == "" {
			assert.Empty(t, violations, gates)
			continue
		}
		require.Len(t, violations, 1, gates)
		assert.Contains(t, violations[0].String(), want, gates)
	}
}

// TestExternalOfLandscapes: a declared object is not external.
func TestExternalOfLandscapes(t *testing.T) {
	for name, test := range map[string]struct{ entry, want string }{
		"declared":           {"{kind: Namespace, name: a}", "landscape.yaml:6:5: warning: Landscape test: spec.external[0]: is declared in a.yaml:1, so it is not external; remove the entry, or the declaration if something else creates the object [landscape/config]"},
		"another one":        {"{kind: Namespace, name: b}", ""},
		"another kind":       {"{kind: Seed, name: a}", ""},
		"in a namespace":     {"{kind: Namespace, namespace: x, name: a}", ""},
		"several":            {"{kind: Namespace, name: '*'}", ""},
		"left to the schema": {"{kind: Namespace}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, violations, err := LoadFS(t.Context(), tree(map[string]string{"landscape.yaml": withSpec("  external:\n  - " + test.entry + "\n"), "a.yaml": namespace("a")}), ".", Options{})
			require.NoError(t, err)
			if test.want == "" {
				assert.Empty(t, violations)
				return
			}
			require.Len(t, violations, 1)
			assert.Equal(t, test.want, violations[0].String())
		})
	}
}
