package schemas

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// part describes how much of a value a rule reads.
type part struct {
	// whole: all of it. shape: the number of items, or the names of fields. there: its existence.
	whole, shape, there bool
	// asked: the existence of the old object, which is known without reading it.
	asked  bool
	fields map[string]*part
	// items describes how much is read of each list item, or of each field of a map.
	items *part
}

// at returns the part at a path, and creates it if it does not exist.
func (p *part) at(path []string) *part {
	for _, name := range path {
		if name == anyItem {
			if p.items == nil {
				p.items = &part{}
			}
			p = p.items
			continue
		}
		if p.fields == nil {
			p.fields = map[string]*part{}
		}
		if p.fields[name] == nil {
			p.fields[name] = &part{}
		}
		p = p.fields[name]
	}
	return p
}

// any reports whether any of the value is read.
func (p *part) any() bool {
	return p != nil && (p.asked || p.whole || p.shape || p.there || len(p.fields) > 0 || p.items != nil)
}

// merge adds the part of all fields of a map to each single field, and drops parts inside a whole.
func (p *part) merge() {
	if p == nil {
		return
	}
	if p.whole {
		*p = part{whole: true, asked: p.asked}
		return
	}
	for _, field := range p.fields {
		field.add(p.items)
		field.merge()
	}
	p.items.merge()
}

func (p *part) add(other *part) {
	if other == nil {
		return
	}
	p.whole, p.shape, p.there = p.whole || other.whole, p.shape || other.shape, p.there || other.there
	for name, field := range other.fields {
		p.at([]string{name}).add(field)
	}
	if other.items != nil {
		p.at([]string{anyItem}).add(other.items)
	}
}

// none reports whether nothing is read.
func (p *part) none() bool { return !p.there && p.onlyThere() }

// onlyThere reports whether nothing but the existence of the value is read.
func (p *part) onlyThere() bool { return !p.whole && !p.shape && len(p.fields) == 0 && p.items == nil }

// String returns the same text for the same parts only.
func (p *part) String() string {
	var b strings.Builder
	p.write(&b)
	return b.String()
}

func (p *part) write(b *strings.Builder) {
	if p.whole {
		b.WriteString("*")
		return
	}
	if p.onlyThere() && p.there {
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

func (p *part) of(object map[string]any) map[string]any {
	if p.whole {
		return object
	}
	return p.ofMap(object)
}

func (p *part) ofMap(object map[string]any) map[string]any {
	out := make(map[string]any, min(len(object), len(p.fields)))
	if !p.shape && p.items == nil {
		for name, field := range p.fields {
			if value, ok := object[name]; ok {
				out[name] = field.ofValue(value)
			}
		}
		return out
	}
	for name, value := range object {
		switch field := p.fields[name]; {
		case field != nil:
			out[name] = field.ofValue(value)
		case p.items != nil:
			out[name] = p.items.ofValue(value)
		default:
			out[name] = true // records that it exists
		}
	}
	return out
}

// ofValue returns what is read of a value. It keeps values without parts, and values of another
// type than the rule expects.
func (p *part) ofValue(value any) any {
	if p.whole {
		return value
	}
	if p.onlyThere() {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		return p.ofMap(v)
	case []any:
		if p.items == nil && !p.shape {
			return value
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = any(true)
			if p.items != nil {
				out[i] = p.items.ofValue(item)
			}
		}
		return out
	}
	return value
}
