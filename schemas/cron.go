// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// cronField is one of the five fields of a schedule.
type cronField struct {
	name      string
	low, high int
	names     []string // names of the values from low on, in lower case
}

var cronFields = [...]cronField{
	{name: "minute", high: 59},
	{name: "hour", high: 23},
	{name: "day of the month", low: 1, high: 31},
	{name: "month", low: 1, high: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of the week", high: 6, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// CronProblem describes why a text is not a cron schedule, or returns "". Like Gardener's
// hibernation, it accepts schedules of github.com/robfig/cron: five fields, or a word such as
// @daily or @every 1h.
func CronProblem(text string) string {
	if strings.HasPrefix(text, "@") {
		return cronWordProblem(text)
	}
	fields := strings.Fields(text)
	if len(fields) != len(cronFields) {
		return fmt.Sprintf("has %d fields, but must have 5: minute, hour, day of the month, month, day of the week", len(fields))
	}
	for i, field := range fields {
		for _, part := range strings.FieldsFunc(field, func(r rune) bool { return r == ',' }) {
			if problem := cronFields[i].problem(part); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// IsNeverDue reports whether a valid schedule never fires, because its month has fewer days.
func IsNeverDue(text string) bool {
	schedule, err := cron.ParseStandard(text)
	return err == nil && schedule.Next(time.Unix(0, 0)).IsZero()
}

func cronWordProblem(text string) string {
	if every, ok := strings.CutPrefix(text, "@every "); ok {
		if _, err := time.ParseDuration(every); err != nil {
			return fmt.Sprintf("has the duration %q, but must have one such as 12h", every)
		}
		return ""
	}
	switch text {
	case "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly":
		return ""
	}
	return "is none of @yearly, @monthly, @weekly, @daily, @hourly and @every DURATION"
}

// problem checks one item of a field: *, a number or a range, and a step.
func (f cronField) problem(item string) string {
	span, step, hasStep := strings.Cut(item, "/")
	low, high, isRange := strings.Cut(span, "-")
	if hasStep {
		if number, err := strconv.Atoi(step); err != nil || number <= 0 {
			return fmt.Sprintf("has the step %q in the field %s, but a step is a number above 0", step, f.name)
		}
	}
	if low == "*" || low == "?" {
		if isRange {
			return fmt.Sprintf("has %q in the field %s; write * or a range, but not both", item, f.name)
		}
		return ""
	}
	first, ok := f.parseNumber(low)
	if !ok {
		return f.outOfRangeProblem(low)
	}
	if !isRange {
		return ""
	}
	last, ok := f.parseNumber(high)
	switch {
	case !ok:
		return f.outOfRangeProblem(high)
	case first > last:
		return fmt.Sprintf("has the range %s in the field %s, whose begin is after its end", span, f.name)
	}
	return ""
}

func (f cronField) outOfRangeProblem(text string) string {
	return fmt.Sprintf("has %q in the field %s, but its values are %d to %d", text, f.name, f.low, f.high)
}

func (f cronField) parseNumber(text string) (int, bool) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.low + i, true
		}
	}
	number, err := strconv.Atoi(text)
	return number, err == nil && number >= f.low && number <= f.high
}
