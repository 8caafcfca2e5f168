// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"encoding/binary"
	"math"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// packedObject is object content in a tenth of the memory of its maps. Unpacked texts are
// substrings of it.
type packedObject string

// Type marks before values.
const (
	markNull  = 'n'
	markTrue  = 't'
	markFalse = 'f'
	markInt   = 'i'
	markFloat = 'd'
	markText  = 's'
	markList  = 'l'
	markMap   = 'm'
)

// pack encodes content with the types of unstructured objects.
func pack(content map[string]any) packedObject { return packedObject(appendPacked(nil, content)) }

func appendPacked(to []byte, value any) []byte {
	switch v := value.(type) {
	case bool:
		if v {
			return append(to, markTrue)
		}
		return append(to, markFalse)
	case int64:
		return binary.AppendVarint(append(to, markInt), v)
	case float64:
		return binary.BigEndian.AppendUint64(append(to, markFloat), math.Float64bits(v))
	case string:
		return appendPackedText(append(to, markText), v)
	case []any:
		to = binary.AppendUvarint(append(to, markList), uint64(len(v)))
		for _, item := range v {
			to = appendPacked(to, item)
		}
		return to
	case map[string]any:
		to = binary.AppendUvarint(append(to, markMap), uint64(len(v)))
		for name, field := range v {
			to = appendPacked(appendPackedText(to, name), field)
		}
		return to
	}
	return append(to, markNull)
}

func appendPackedText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// unpack returns a new copy of the content.
func (p packedObject) unpack() map[string]any {
	u := unpacker{rest: string(p)}
	content, _ := u.readValue().(map[string]any)
	return content
}

type unpacker struct{ rest string }

func (u *unpacker) readBytes(n int) string {
	part := u.rest[:n]
	u.rest = u.rest[n:]
	return part
}

func (u *unpacker) readCount() int {
	n, size := uint64(0), 0
	for shift := 0; ; shift += 7 {
		b := u.rest[size]
		size++
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			break
		}
	}
	u.rest = u.rest[size:]
	return int(n)
}

func (u *unpacker) readValue() any {
	switch u.readBytes(1)[0] {
	case markTrue:
		return true
	case markFalse:
		return false
	case markInt:
		n := uint64(u.readCount()) // zigzag encoding, as in binary.AppendVarint
		return int64(n>>1) ^ -int64(n&1)
	case markFloat:
		return math.Float64frombits(binary.BigEndian.Uint64([]byte(u.readBytes(8))))
	case markText:
		return u.readBytes(u.readCount())
	case markList:
		list := make([]any, u.readCount())
		for i := range list {
			list[i] = u.readValue()
		}
		return list
	case markMap:
		n := u.readCount()
		fields := make(map[string]any, n)
		for range n {
			name := u.readBytes(u.readCount())
			fields[name] = u.readValue()
		}
		return fields
	}
	return nil
}

// pack returns a compact reader. It unpacks content on demand, and shares it while it is
// referenced.
func (w declaredContent) pack() contentReader {
	object, origins, recipients := pack(w.object.Object), w.origins, w.recipients
	var sealed packedObject
	if w.sealed != nil {
		sealed = pack(w.sealed)
	}
	var mutex sync.Mutex
	var last weak.Pointer[unstructured.Unstructured]
	return func(p contentUse) declaredContent {
		switch p {
		case usePreload:
			return declaredContent{}
		case useCopy:
			return declaredContent{object: &unstructured.Unstructured{Object: object.unpack()}, origins: origins}
		}
		mutex.Lock()
		defer mutex.Unlock()
		w := declaredContent{object: last.Value(), origins: origins, recipients: recipients}
		if w.object == nil {
			w.object = &unstructured.Unstructured{Object: object.unpack()}
			last = weak.Make(w.object)
		}
		if sealed != "" {
			w.sealed = sealed.unpack()
		}
		return w
	}
}
