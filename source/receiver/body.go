package receiver

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// maxBody is how much one body may have, in bytes.
const maxBody = 1 << 20

// hurry is how long a body may take where its sender holds much memory, and what is left of one
// that is not read.
const hurry = 2 * time.Second

// incoming is a body in memory.
type incoming struct {
	room   *room
	sender sender
	data   []byte
}

// release gives the memory back. The data are not used any more.
func (b *incoming) release() {
	if cap(b.data) > 0 {
		b.room.give(b.sender, cap(b.data))
		b.data = nil
	}
}

// grow makes place for more bytes.
func (b *incoming) grow() bool {
	size := min(max(firstPiece, 2*cap(b.data)), maxBody+1)
	if !b.room.take(b.sender, size-cap(b.data)) {
		return false
	}
	b.data = append(make([]byte, 0, size), b.data...)
	return true
}

// read gives the status of the answer, unless it is http.StatusOK: then the body is there.
func (b *incoming) read(w http.ResponseWriter, req *http.Request) int {
	if encoding := req.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		hasten(w)
		return http.StatusUnsupportedMediaType
	}
	if req.ContentLength > maxBody {
		w.Header().Set("Connection", "close")
		return http.StatusRequestEntityTooLarge
	}
	if b.room.short(b.sender) {
		hasten(w)
	}
	from := http.MaxBytesReader(w, req.Body, maxBody)
	for {
		if len(b.data) == cap(b.data) && !b.grow() {
			hasten(w)
			return http.StatusTooManyRequests
		}
		n, err := from.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		var large *http.MaxBytesError
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return http.StatusOK
		case errors.As(err, &large):
			return http.StatusRequestEntityTooLarge
		default:
			return http.StatusBadRequest
		}
	}
}

// hasten bounds the time for what is still to come of a request; the server reads that before it
// answers.
func hasten(w http.ResponseWriter) {
	// of a connection, which knows only real time
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(hurry))
}
