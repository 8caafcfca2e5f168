// SPDX-License-Identifier: Apache-2.0

package resultcache

import "encoding/binary"

// Writer encodes a value; a Reader decodes its parts in the same order.
type Writer struct{ data []byte }

// Bytes returns the encoded value.
func (w *Writer) Bytes() []byte { return w.data }

// Uint appends a number.
func (w *Writer) Uint(n uint64) { w.data = binary.AppendUvarint(w.data, n) }

// Text appends a text.
func (w *Writer) Text(text string) {
	w.Uint(uint64(len(text)))
	w.data = append(w.data, text...)
}

// appendBytes appends a byte slice.
func (w *Writer) appendBytes(data []byte) {
	w.Uint(uint64(len(data)))
	w.data = append(w.data, data...)
}

// Key appends a key.
func (w *Writer) Key(key Key) { w.data = append(w.data, key[:]...) }

// Reader decodes a value. Missing parts are zero, and Whole becomes false.
type Reader struct {
	data     []byte
	isBroken bool
}

// NewReader returns a Reader of an encoded value.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

// IsComplete reports whether all parts existed and no data is left.
func (r *Reader) IsComplete() bool { return !r.isBroken && len(r.data) == 0 }

// Uint reads a number.
func (r *Reader) Uint() uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.isBroken, r.data = true, nil
		return 0
	}
	r.data = r.data[size:]
	return n
}

// Count reads the number of following parts. Each has at least one byte, so a corrupt number cannot
// exhaust memory.
func (r *Reader) Count() int {
	n := r.Uint()
	if n > uint64(len(r.data)) {
		r.isBroken, r.data = true, nil
		return 0
	}
	return int(n)
}

// Text reads a text.
func (r *Reader) Text() string { return string(r.bytes()) }

// Key reads a key.
func (r *Reader) Key() (key Key) {
	if len(r.data) < len(key) {
		r.isBroken, r.data = true, nil
		return key
	}
	copy(key[:], r.data)
	r.data = r.data[len(key):]
	return key
}

func (r *Reader) bytes() []byte {
	n := r.Count()
	part := r.data[:n:n]
	r.data = r.data[n:]
	return part
}
