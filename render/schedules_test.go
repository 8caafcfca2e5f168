// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"cuelang.org/go/cue"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/components"
)

// TestEtcdSchedules: adopted etcds keep upstream's times (gardener: pkg/apis/utils/timewindow). If
// upstream uses the creation time, owners differ.
func TestEtcdSchedules(t *testing.T) {
	k8s, err := newEvaluator(components.FS).build("kubernetes", "kubernetes")
	require.NoError(t, err)
	text := func(t *testing.T, v cue.Value, path string) string {
		t.Helper()
		s, err := v.LookupPath(cue.ParsePath(path)).String()
		require.NoError(t, err)
		return s
	}
	const always = "000000+0000 235959+0000"
	uids := []string{"9c9a6a5b-7d0c-4a4f-8e4c-0c6f4a0f3b11", "00000000-0000-4000-8000-000000000000", "3e1f5f3e-52a3-4c39-9a6e-7f1d1a2b3c4d"}
	atNoWindow := map[string]bool{}
	for _, window := range []struct{ begin, end string }{
		{"220000+0100", "230000+0100"}, {"233000+0000", "003000+0000"}, {"000000-0730", "060000-0730"}, {"010030+0000", "020000+0000"},
		{"000500+1400", "013559+1400"}, {"000000+0000", "235959+0000"}, {"000000+0100", "235959+0100"}, {"040000+0000", "040000+0000"},
	} {
		for _, uid := range uids {
			t.Run(window.begin+" "+window.end+" "+uid[:8], func(t *testing.T) {
				v := k8s.LookupPath(cue.ParsePath("#Schedules")).FillPath(cue.ParsePath("begin"), window.begin).
					FillPath(cue.ParsePath("end"), window.end).FillPath(cue.ParsePath("uid"), uid)
				begin, err := time.Parse("150405-0700", window.begin)
				require.NoError(t, err)
				end, err := time.Parse("150405-0700", window.end)
				require.NoError(t, err)
				if !end.After(begin) {
					end = end.AddDate(0, 0, 1)
				}
				spread := crc32.ChecksumIEEE([]byte(uid))
				defragmentation := begin.UTC().Add(time.Duration(spread%uint32(end.Sub(begin).Minutes())) * time.Minute)
				backup := begin.UTC().Add(-75 * time.Minute).Add(time.Duration(spread%60) * time.Minute)
				if window.begin+" "+window.end == always {
					atNoWindow[text(t, v, "backup")] = true
				} else {
					assert.Equal(t, fmt.Sprintf("%d %d * * *", backup.Minute(), backup.Hour()), text(t, v, "backup"))
				}
				daily := fmt.Sprintf("%d %d ", defragmentation.Minute(), defragmentation.Hour())
				assert.Equal(t, daily+"* * *", text(t, v, "defragmentation.daily"))
				assert.Equal(t, daily+"*/3 * *", text(t, v, "defragmentation.everyThirdDay"))
			})
		}
	}
	assert.Len(t, atNoWindow, len(uids))
}
