package kept

import "encoding/binary"

// Writer makes a value of parts, to be read by a Reader in the same order.
type Writer struct{ data []byte }

// Bytes is what was written.
func (w *Writer) Bytes() []byte { return w.data }

// Uint writes a number.
func (w *Writer) Uint(n uint64) { w.data = binary.AppendUvarint(w.data, n) }

// Text writes a text of any length.
func (w *Writer) Text(text string) {
	w.Uint(uint64(len(text)))
	w.data = append(w.data, text...)
}

// raw writes bytes of any number.
func (w *Writer) raw(data []byte) {
	w.Uint(uint64(len(data)))
	w.data = append(w.data, data...)
}

// Key writes a key.
func (w *Writer) Key(key Key) { w.data = append(w.data, key[:]...) }

// Reader reads a value. What is not there is empty, and Whole is false from then on.
type Reader struct {
	data   []byte
	broken bool
}

// NewReader begins to read a value.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

// Whole tells whether all was there, and nothing is left.
func (r *Reader) Whole() bool { return !r.broken && len(r.data) == 0 }

// Uint reads a number.
func (r *Reader) Uint() uint64 {
	n, size := binary.Uvarint(r.data)
	if size <= 0 {
		r.broken, r.data = true, nil
		return 0
	}
	r.data = r.data[size:]
	return n
}

// Count reads the number of parts that follow. Each of them has a byte at least, so that a broken
// number takes no memory.
func (r *Reader) Count() int {
	n := r.Uint()
	if n > uint64(len(r.data)) {
		r.broken, r.data = true, nil
		return 0
	}
	return int(n)
}

// Text reads a text.
func (r *Reader) Text() string { return string(r.bytes()) }

// Key reads a key.
func (r *Reader) Key() (key Key) {
	if len(r.data) < len(key) {
		r.broken, r.data = true, nil
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
