package landscapes

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/landscapes/windows"
	"github.com/pergola-dev/pergola/schemas"
)

// someDay is one that schedules are followed from, so that what is valid is so on any day: they are looked at for five years.
var someDay = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// checkTimes looks at windows, which the operator refuses when nobody can read them or none ever opens, and at the time that a sync may take.
func (l *loader) checkTimes(config *Declaration, spec map[string]any) {
	text, _ := spec["timeout"].(string)
	if timeout, err := time.ParseDuration(text); err == nil && timeout <= 0 {
		l.reportField(config, "spec.timeout", schemas.TypeInvalid, ruleConfig, "must be more than 0, such as 1h")
	}
	list, _ := spec["windows"].([]any)
	never := len(list) > 0
	for i, item := range list {
		encoded, err := json.Marshal(item)
		if err != nil {
			return
		}
		var window landscapev1alpha1.SyncWindow
		if json.Unmarshal(encoded, &window) != nil {
			return // left to the schema
		}
		schedule, _, err := windows.Parse(window)
		if wrong := (*windows.Error)(nil); errors.As(err, &wrong) {
			if entry, _ := item.(map[string]any); entry[wrong.Field] != nil { // what is missing is left to the schema, too
				l.reportField(config, fmt.Sprintf("spec.windows[%d].%s", i, wrong.Field), schemas.TypeInvalid, ruleConfig, fmt.Sprintf("%q: %s", wrong.Value, wrong.Message))
			}
			never = false
		} else if err == nil && !schedule.Next(someDay).IsZero() {
			never = false
		}
	}
	if never {
		l.reportField(config, "spec.windows", schemas.TypeInvalid, ruleConfig, "none of them ever opens: nothing could be applied any more, not even what takes them away")
	}
}
