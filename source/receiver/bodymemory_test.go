// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
)

// allocateAll takes as much memory as a sender gets, piece by piece.
func allocateAll(m *bodyMemory, s sender) int {
	took := 0
	for m.allocate(s, firstChunk) {
		took += firstChunk
	}
	return took
}

// TestBodyMemory: a new sender has memory for a push beside many greedy ones; a proven sender has
// it in any case.
func TestBodyMemory(t *testing.T) {
	for _, c := range []struct{ greedy, anew int }{{0, maxBody + 1}, {1, maxBody + 1}, {8, maxBody + 1}, {60, 32 << 10}, {2000, 0}} {
		t.Run(fmt.Sprint(c.greedy), func(t *testing.T) {
			m := newBodyMemory()
			for i := range c.greedy {
				one := sender{source: fmt.Sprint(i)}
				took := allocateAll(m, one)
				assert.Equal(t, took > 0, m.isNearLimit(one), "who holds much has to hurry")
			}
			anew := sender{source: "new"}
			assert.Equal(t, c.anew > 0, m.allocate(anew, max(firstChunk, c.anew)), "of %d free", m.free)
			for i := range 4 {
				proven := sender{source: "0", path: fmt.Sprint(i)}
				assert.False(t, m.isNearLimit(proven), "what strangers of the same source hold is not counted")
				assert.True(t, m.allocate(proven, maxBody+1), "of %d free", m.free)
			}
			for i := range 100 {
				allocateAll(m, sender{source: "0", path: fmt.Sprint(i)})
			}
			assert.GreaterOrEqual(t, m.free, 0, "never more than there is")
		})
	}
}

// TestBodyMemoryIsReleased: all memory is freed, however a request ends.
func TestBodyMemoryIsReleased(t *testing.T) {
	f := newHandlerFixture(t, targetsOfType(landscapev1alpha1.ReceiverHMAC))
	body := `{"ref":"refs/heads/main"}`
	for name, c := range map[string]struct {
		body   io.Reader
		header header
		want   int
	}{
		"delivered":  {strings.NewReader(body), signed(body, noon), http.StatusAccepted},
		"refused":    {strings.NewReader(body), nil, http.StatusNotFound},
		"empty":      {http.NoBody, nil, http.StatusNotFound},
		"too large":  {strings.NewReader(strings.Repeat(" ", maxBody+1)), nil, http.StatusRequestEntityTooLarge},
		"unfinished": {io.MultiReader(strings.NewReader(body), failingReader{}), nil, http.StatusBadRequest},
		"compressed": {strings.NewReader(body), header{"Content-Encoding": "gzip"}, http.StatusUnsupportedMediaType},
	} {
		req := httptest.NewRequest(http.MethodPost, "/hooks/garden/prod/push", c.body)
		for k, v := range c.header {
			req.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, req)
		assert.Equal(t, c.want, w.Code, name)
		assert.Equal(t, maxBodies, f.bodyMemory.free, name)
		assert.Empty(t, f.bodyMemory.allocated, name)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("i/o timeout") }

// deadlineRecorder records the deadlines for the rest of a request.
type deadlineRecorder struct {
	*httptest.ResponseRecorder
	read []time.Time
}

func (d *deadlineRecorder) SetReadDeadline(t time.Time) error {
	d.read = append(d.read, t)
	return nil
}

func TestBodiesInMemoryAreBounded(t *testing.T) {
	f := newHandlerFixture(t, targetsOfType(landscapev1alpha1.ReceiverHMAC))
	post := func(source string, size int) *deadlineRecorder {
		req := httptest.NewRequest(http.MethodPost, "/hooks/a/b/c", bytes.NewReader(make([]byte, size)))
		req.RemoteAddr = source + ":1"
		w := &deadlineRecorder{ResponseRecorder: httptest.NewRecorder()}
		f.ServeHTTP(w, req)
		return w
	}
	const stranger, other = "198.51.100.7", "203.0.113.9"
	took := allocateAll(f.bodyMemory, sender{source: stranger})
	assert.Less(t, took, maxBodies/unprovenShare)
	w := post(stranger, 10)
	assert.Equal(t, http.StatusTooManyRequests, w.Code)
	assert.Equal(t, "5", w.Header().Get("Retry-After"))
	assert.NotEmpty(t, w.read, "the rest is not waited for long")
	w = post(other, maxBody)
	assert.Equal(t, http.StatusNotFound, w.Code, "another is looked at, also with the largest body")
	assert.Empty(t, w.read, "and has all the time of the server")

	f.bodyMemory.release(sender{source: stranger}, took/16)
	before := time.Now()
	w = post(stranger, 10)
	assert.Equal(t, http.StatusNotFound, w.Code)
	if assert.Len(t, w.read, 1, "who holds much has to hurry") {
		assert.WithinRange(t, w.read[0], before, time.Now().Add(shortReadTimeout))
	}
	assert.Equal(t, http.StatusTooManyRequests, post(stranger, 1<<20).Code)
	f.bodyMemory.release(sender{source: stranger}, took-took/16)
	assert.Equal(t, maxBodies, f.bodyMemory.free)
}
