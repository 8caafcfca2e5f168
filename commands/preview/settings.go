// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pergola-dev/pergola/change"
	"github.com/pergola-dev/pergola/change/redact"
	"github.com/pergola-dev/pergola/landscapes"
	"github.com/pergola-dev/pergola/schemas"
)

// No object shows the settings of landscape.yaml that protect a landscape, so a reviewer sees their
// changes as notes.

// settingChange is a changed setting of landscape.yaml that no object shows.
type settingChange struct {
	// field is its path, such as spec.review; difference has both values; effect is the
	// consequence, if known.
	field, difference, effect string
}

func (c settingChange) String() string {
	text := "landscape.yaml: " + c.field + ": " + c.difference
	if c.effect != "" {
		text += ": " + c.effect
	}
	return text
}

// isWeaker reports whether the change reduces protection.
func (c settingChange) isWeaker() bool { return strings.Contains(c.effect, weakerProtectionText) }

// SettingNotes returns notes about changed settings that no object shows, with their consequences.
func SettingNotes(old, new *landscapes.Landscape) []string {
	var out []string
	for _, c := range settingChanges(old, new) {
		out = append(out, c.String())
	}
	return out
}

// ruleProtection is the rule of findings about reduced protection.
const ruleProtection = "landscape/protection"

// ruleRenamed is the rule of the finding about a renamed landscape.
const ruleRenamed = "landscape/renamed"

// rule returns the rule of the finding about a change, or "" if there is only a note.
func (c settingChange) rule() string {
	switch {
	case c.field == nameField:
		return ruleRenamed
	case c.isWeaker():
		return ruleProtection
	}
	return ""
}

const nameField = "metadata.name"

// nameChange is a change of the landscape's name, which is part of the names of its inventories.
func nameChange(old, new string) settingChange {
	return settingChange{nameField, old + " → " + new, fmt.Sprintf(
		"the inventory belongs to landscape.%s and stays with it: %s starts without one, adopts nothing and prunes nothing. "+
			"Keep the name, or move the declarations to a new folder with a landscape of the new name, and sync both", old, new)}
}

// ProtectionFindings returns findings about settings that reduce protection or lose an inventory,
// with the text of the notes.
func ProtectionFindings(old, new *landscapes.Landscape) []schemas.Violation {
	var out []schemas.Violation
	for _, c := range settingChanges(old, new) {
		rule := c.rule()
		if rule == "" {
			continue
		}
		d := new.ConfigDeclaration
		place := d.Position(c.field)
		out = append(out, schemas.Violation{
			Severity: schemas.SeverityWarning, File: filepath.Join(new.Dir, place.File), Line: place.Line, Column: place.Column, Kind: d.GroupVersionKind().Kind, Name: d.Name(),
			Field: c.field, Type: schemas.TypeForbidden, Rule: rule, Message: c.difference + ": " + c.effect,
		})
	}
	return out
}

func settingChanges(old, new *landscapes.Landscape) []settingChange {
	if old.ConfigDeclaration == nil || new.ConfigDeclaration == nil {
		return nil // it is missing, or its error is reported elsewhere
	}
	object := new.ConfigDeclaration.Object().Object
	before, after := settingsIn(old), settingsIn(new)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var out []settingChange
	if was, is := old.ConfigDeclaration.Name(), new.ConfigDeclaration.Name(); was != is && was != "" && is != "" {
		out = append(out, nameChange(was, is))
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		s := settingRuleOf(path)
		was, is := before[path].value, after[path].value
		if s.isInObjects || s.onlyPresence && was != nil && is != nil || isSameSetting(s.effectiveValue(was), s.effectiveValue(is)) {
			continue
		}
		shown := redact.ConcealField(object, all[path].keys, change.Field{Old: was, New: is})
		c := settingChange{field: "spec." + path, difference: s.difference(shown)}
		if s.effect != nil {
			c.effect = s.effect(s.effectiveValue(was), s.effectiveValue(is))
		}
		out = append(out, c)
	}
	return out
}

// settingValue is the value of a setting and its path in landscape.yaml.
type settingValue struct {
	keys  []string
	value any
}

// settingsIn returns the settings of a landscape by their path below spec, down to values that are
// not maps or have one note.
func settingsIn(l *landscapes.Landscape) map[string]settingValue {
	out := map[string]settingValue{}
	var walk func(path string, keys []string, value any)
	walk = func(path string, keys []string, value any) {
		fields, isMap := value.(map[string]any)
		if !isMap || path != "" && settingRuleOf(path).isOneNote {
			if value != nil {
				out[path] = settingValue{keys, value}
			}
			return
		}
		for key, inner := range fields {
			step := key
			switch {
			case strings.ContainsAny(key, "./ []"):
				step = path + "[" + key + "]"
			case path != "":
				step = path + "." + key
			}
			walk(step, append(slices.Clone(keys), key), inner)
		}
	}
	walk("", []string{"spec"}, l.ConfigDeclaration.Object().Object["spec"])
	return out
}

// isSameSetting ignores the order of lists, which has no meaning in settings that no object shows.
func isSameSetting(a, b any) bool {
	x, isList := a.([]any)
	y, both := b.([]any)
	if !isList || !both {
		return reflect.DeepEqual(a, b) || a != nil && b != nil && fmt.Sprint(a) == fmt.Sprint(b)
	}
	return len(missingItems(x, y)) == 0 && len(missingItems(y, x)) == 0
}

// missingItems returns the items of a list that another one lacks, as text.
func missingItems(list, other []any) []string {
	var out []string
	for _, item := range list {
		if !slices.ContainsFunc(other, func(o any) bool { return reflect.DeepEqual(item, o) }) {
			out = append(out, settingText(item))
		}
	}
	return out
}

// difference describes the change; for lists the removed and added items.
func (s settingRule) difference(f change.Field) string {
	if f.Hidden {
		return "(hidden value changed)"
	}
	old, isList := s.effectiveValue(f.Old).([]any)
	new, both := s.effectiveValue(f.New).([]any)
	if isList && both {
		var parts []string
		if gone := missingItems(old, new); len(gone) > 0 {
			parts = append(parts, "without "+itemList(gone))
		}
		if more := missingItems(new, old); len(more) > 0 {
			parts = append(parts, "with "+itemList(more))
		}
		if len(parts) == 0 {
			return "(hidden value changed)"
		}
		return strings.Join(parts, ", ")
	}
	return s.valueText(f.Old) + " → " + s.valueText(f.New)
}

// valueText returns a value, its default, or "(none)".
func (s settingRule) valueText(value any) string {
	switch {
	case value != nil:
		return settingText(value)
	case s.defaultValue != nil:
		return "(none, default " + settingText(s.defaultValue) + ")"
	}
	return "(none)"
}

// maxSettingText limits a value in a note, in characters; maxListedItems limits the items of a
// list.
const maxSettingText, maxListedItems = 200, 20

// settingText returns a value as one line.
func settingText(value any) string {
	text, plain := value.(string)
	switch {
	case plain && strings.ContainsAny(text, "\n\r\t"), plain && text == "":
		text = strconv.Quote(text)
	case !plain:
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}
		text = string(raw)
	}
	if r := []rune(text); len(r) > maxSettingText {
		text = string(r[:maxSettingText]) + "…"
	}
	return text
}

func itemList(items []string) string {
	if more := len(items) - maxListedItems; more > 0 {
		return strings.Join(items[:maxListedItems], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(items, ", ")
}
