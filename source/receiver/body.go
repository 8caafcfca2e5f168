// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// maxBody is the maximum size of a body, in bytes.
const maxBody = 1 << 20

// shortReadTimeout is the time limit for a body whose sender holds much memory, and for the rest of
// an unread body.
const shortReadTimeout = 2 * time.Second

// requestBody is a body in memory.
type requestBody struct {
	memory *bodyMemory
	sender sender
	data   []byte
}

// release frees the memory. The data must no longer be used.
func (b *requestBody) release() {
	if cap(b.data) > 0 {
		b.memory.release(b.sender, cap(b.data))
		b.data = nil
	}
}

// grow reserves memory for more bytes.
func (b *requestBody) grow() bool {
	size := min(max(firstChunk, 2*cap(b.data)), maxBody+1)
	if !b.memory.allocate(b.sender, size-cap(b.data)) {
		return false
	}
	b.data = append(make([]byte, 0, size), b.data...)
	return true
}

// read returns the status of the answer; http.StatusOK if the body is complete.
func (b *requestBody) read(w http.ResponseWriter, req *http.Request) int {
	if encoding := req.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		limitReadTime(w)
		return http.StatusUnsupportedMediaType
	}
	if req.ContentLength > maxBody {
		w.Header().Set("Connection", "close")
		return http.StatusRequestEntityTooLarge
	}
	if b.memory.isNearLimit(b.sender) {
		limitReadTime(w)
	}
	from := http.MaxBytesReader(w, req.Body, maxBody)
	for {
		if len(b.data) == cap(b.data) && !b.grow() {
			limitReadTime(w)
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

// limitReadTime limits the time to receive the rest of a request, which the server reads before it
// answers.
func limitReadTime(w http.ResponseWriter) {
	// connections use real time
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(shortReadTimeout))
}
