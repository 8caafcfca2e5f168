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

// landscape.yaml says what protects a landscape, and no object on a cluster changes with it: a
// reviewer sees it as notes.

// settingChange is a setting of landscape.yaml that differs and that no object shows.
type settingChange struct {
	// field is where it stands, spec.review; difference what it was and is; effect what follows
	// from that, if more is known.
	field, difference, effect string
}

func (c settingChange) String() string {
	text := "landscape.yaml: " + c.field + ": " + c.difference
	if c.effect != "" {
		text += ": " + c.effect
	}
	return text
}

// weakens tells whether less is protected by it.
func (c settingChange) weakens() bool { return strings.Contains(c.effect, lessProtection) }

// SettingNotes are the settings of landscape.yaml that differ and that no object shows, with what
// follows from each.
func SettingNotes(old, new *landscapes.Landscape) []string {
	var out []string
	for _, c := range settingChanges(old, new) {
		out = append(out, c.String())
	}
	return out
}

// ruleProtection is the rule of the findings about what is less protected than before.
const ruleProtection = "landscape/protection"

// ruleRenamed is the rule of the finding about another name of the landscape.
const ruleRenamed = "landscape/renamed"

// rule is that of the finding about a change, "" if it is for a note only.
func (c settingChange) rule() string {
	switch {
	case c.field == nameField:
		return ruleRenamed
	case c.weakens():
		return ruleProtection
	}
	return ""
}

const nameField = "metadata.name"

// renaming is the change of the name, by which inventories are found.
func renaming(old, new string) settingChange {
	return settingChange{nameField, old + " → " + new, fmt.Sprintf(
		"what was applied is recorded for landscape.%s and stays with it: %s begins without an inventory, takes none of it over and prunes none of it; "+
			"keep the name, or move the declarations to a landscape of the new name in a folder of its own and let both be synced", old, new)}
}

// Weakened are the findings about settings of landscape.yaml by which less is protected than before
// or an inventory is lost, in the words of the notes of a difference.
func Weakened(old, new *landscapes.Landscape) []schemas.Violation {
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
		return nil // there is none, or it cannot be read: that is said elsewhere
	}
	object := new.ConfigDeclaration.Object().Object
	before, after := settingsIn(old), settingsIn(new)
	all := maps.Clone(before)
	maps.Copy(all, after)
	var out []settingChange
	if was, is := old.ConfigDeclaration.Name(), new.ConfigDeclaration.Name(); was != is && was != "" && is != "" {
		out = append(out, renaming(was, is))
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		s := settingOf(path)
		was, is := before[path].value, after[path].value
		if s.inObjects || s.onlySet && was != nil && is != nil || sameSetting(s.effective(was), s.effective(is)) {
			continue
		}
		shown := redact.Conceal(object, all[path].keys, change.Field{Old: was, New: is})
		c := settingChange{field: "spec." + path, difference: s.difference(shown)}
		if s.effect != nil {
			c.effect = s.effect(s.effective(was), s.effective(is))
		}
		out = append(out, c)
	}
	return out
}

// setValue is what a setting is, and where it stands in landscape.yaml.
type setValue struct {
	keys  []string
	value any
}

// settingsIn are the settings of a landscape by their paths below spec, down to what is no map, or
// is told as a whole.
func settingsIn(l *landscapes.Landscape) map[string]setValue {
	out := map[string]setValue{}
	var walk func(path string, keys []string, value any)
	walk = func(path string, keys []string, value any) {
		fields, isMap := value.(map[string]any)
		if !isMap || path != "" && settingOf(path).whole {
			if value != nil {
				out[path] = setValue{keys, value}
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

// sameSetting compares lists without their order, which means nothing in those that no object
// shows.
func sameSetting(a, b any) bool {
	x, isList := a.([]any)
	y, both := b.([]any)
	if !isList || !both {
		return reflect.DeepEqual(a, b) || a != nil && b != nil && fmt.Sprint(a) == fmt.Sprint(b)
	}
	return len(without(x, y)) == 0 && len(without(y, x)) == 0
}

// without are the items of a list that another one does not have, as text.
func without(list, other []any) []string {
	var out []string
	for _, item := range list {
		if !slices.ContainsFunc(other, func(o any) bool { return reflect.DeepEqual(item, o) }) {
			out = append(out, settingText(item))
		}
	}
	return out
}

// difference is the change in words. Of lists it is what comes and goes.
func (s setting) difference(f change.Field) string {
	if f.Hidden {
		return "(hidden value changed)"
	}
	old, isList := s.effective(f.Old).([]any)
	new, both := s.effective(f.New).([]any)
	if isList && both {
		var parts []string
		if gone := without(old, new); len(gone) > 0 {
			parts = append(parts, "without "+listed(gone))
		}
		if more := without(new, old); len(more) > 0 {
			parts = append(parts, "with "+listed(more))
		}
		if len(parts) == 0 {
			return "(hidden value changed)"
		}
		return strings.Join(parts, ", ")
	}
	return s.text(f.Old) + " → " + s.text(f.New)
}

// text is a value, or what is in its place where there is none.
func (s setting) text(value any) string {
	switch {
	case value != nil:
		return settingText(value)
	case s.byDefault != nil:
		return "(none, which is " + settingText(s.byDefault) + ")"
	}
	return "(none)"
}

// mostOfSetting is how much of a value a note has, in characters, and mostListed how many items of
// a list.
const mostOfSetting, mostListed = 200, 20

// settingText is a value in one line.
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
	if r := []rune(text); len(r) > mostOfSetting {
		text = string(r[:mostOfSetting]) + "…"
	}
	return text
}

func listed(items []string) string {
	if more := len(items) - mostListed; more > 0 {
		return strings.Join(items[:mostListed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(items, ", ")
}
