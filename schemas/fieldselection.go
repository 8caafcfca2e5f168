// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// fieldSelection describes how much of a value a rule reads.
type fieldSelection struct {
	// isWhole means all of it, shape means the number of items or the names of fields, and there
	// means its existence.
	isWhole, shape, exists bool
	// oldExists means the existence of the old object, which is known without reading it.
	oldExists bool
	fields    map[string]*fieldSelection
	// items describes how much is read of each list item, or of each field of a map.
	items *fieldSelection
}

// selectionAt returns the part at a path, and creates it if it does not exist.
func (p *fieldSelection) selectionAt(path []string) *fieldSelection {
	for _, name := range path {
		if name == anyItem {
			if p.items == nil {
				p.items = &fieldSelection{}
			}
			p = p.items
			continue
		}
		if p.fields == nil {
			p.fields = map[string]*fieldSelection{}
		}
		if p.fields[name] == nil {
			p.fields[name] = &fieldSelection{}
		}
		p = p.fields[name]
	}
	return p
}

// hasReads reports whether any of the value is read.
func (p *fieldSelection) hasReads() bool {
	return p != nil && (p.oldExists || p.isWhole || p.shape || p.exists || len(p.fields) > 0 || p.items != nil)
}

// merge adds the part of all fields of a map to each single field, and drops parts inside a whole.
func (p *fieldSelection) merge() {
	if p == nil {
		return
	}
	if p.isWhole {
		*p = fieldSelection{isWhole: true, oldExists: p.oldExists}
		return
	}
	for _, field := range p.fields {
		field.add(p.items)
		field.merge()
	}
	p.items.merge()
}

func (p *fieldSelection) add(other *fieldSelection) {
	if other == nil {
		return
	}
	p.isWhole, p.shape, p.exists = p.isWhole || other.isWhole, p.shape || other.shape, p.exists || other.exists
	for name, field := range other.fields {
		p.selectionAt([]string{name}).add(field)
	}
	if other.items != nil {
		p.selectionAt([]string{anyItem}).add(other.items)
	}
}

// isEmpty reports whether nothing is read.
func (p *fieldSelection) isEmpty() bool { return !p.exists && p.isExistenceOnly() }

// isExistenceOnly reports whether nothing but the existence of the value is read.
func (p *fieldSelection) isExistenceOnly() bool {
	return !p.isWhole && !p.shape && len(p.fields) == 0 && p.items == nil
}

// String returns the same text only for the same parts.
func (p *fieldSelection) String() string {
	var b strings.Builder
	p.write(&b)
	return b.String()
}

func (p *fieldSelection) write(b *strings.Builder) {
	if p.isWhole {
		b.WriteString("*")
		return
	}
	if p.isExistenceOnly() && p.exists {
		b.WriteString("?")
		return
	}
	if p.shape {
		b.WriteString("#")
	}
	b.WriteString("{")
	for i, name := range slices.Sorted(maps.Keys(p.fields)) {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(strconv.Quote(name) + ":")
		p.fields[name].write(b)
	}
	if p.items != nil {
		b.WriteString(" []:")
		p.items.write(b)
	}
	b.WriteString("}")
}

func (p *fieldSelection) selectFrom(object map[string]any) map[string]any {
	if p.isWhole {
		return object
	}
	return p.selectFromMap(object)
}

func (p *fieldSelection) selectFromMap(object map[string]any) map[string]any {
	out := make(map[string]any, min(len(object), len(p.fields)))
	if !p.shape && p.items == nil {
		for name, field := range p.fields {
			if value, ok := object[name]; ok {
				out[name] = field.selectFromValue(value)
			}
		}
		return out
	}
	for name, value := range object {
		switch field := p.fields[name]; {
		case field != nil:
			out[name] = field.selectFromValue(value)
		case p.items != nil:
			out[name] = p.items.selectFromValue(value)
		default:
			out[name] = true // records that it exists
		}
	}
	return out
}

// selectFromValue returns what is read of a value. It keeps values without parts, and values of
// a different type than the rule expects.
func (p *fieldSelection) selectFromValue(value any) any {
	if p.isWhole {
		return value
	}
	if p.isExistenceOnly() {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		return p.selectFromMap(v)
	case []any:
		if p.items == nil && !p.shape {
			return value
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = any(true)
			if p.items != nil {
				out[i] = p.items.selectFromValue(item)
			}
		}
		return out
	}
	return value
}
