// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/pergola-dev/pergola/internal/panics"
)

// addPack adds a pack to the cache. It writes the pack to a temporary file, checks the limits
// before it unpacks objects in memory, and renames the complete file.
func (c *gitCache) addPack(ctx context.Context, stream io.Reader, limits Limits) (err error) {
	file, err := os.CreateTemp(c.dir, incomingPrefix)
	if err != nil {
		return fmt.Errorf("store the transfer: %w", err)
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}()
	size, err := io.Copy(file, &limitedReader{Reader: stream, remaining: limits.Transferred})
	switch {
	case errors.Is(err, errLimitExceeded):
		return newError(ReasonTooLarge, "the repository is too large: more than %d MiB would be transferred at once", limits.Transferred/mebibyte)
	case err != nil:
		return connectionError(ctx, "the transfer was interrupted", err)
	case size == 0:
		return newError(ReasonUnreachable, "the server sent nothing")
	}
	if err := checkPackLimits(ctx, file, limits); err != nil {
		return err
	}
	return c.indexPack(ctx, file)
}

// checkPackLimits reads a pack to its end without storing objects. A few bytes can expand to many.
func checkPackLimits(ctx context.Context, file *os.File, limits Limits) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	scanner := packfile.NewScanner(file)
	_, count, err := scanner.Header()
	if err != nil {
		return brokenTransferError(err)
	}
	// Each file has a history and folders around it.
	if most := limits.Files * 20; int64(count) > int64(most) {
		return newError(ReasonTooLarge, "the repository is too large: it sent %d objects, more than %d", count, most)
	}
	var total int64
	for range count {
		if err := ctx.Err(); err != nil {
			return connectionError(ctx, "the transfer", err)
		}
		header, err := scanner.NextObjectHeader()
		if err != nil {
			return brokenTransferError(err)
		}
		if header.Length > limits.Object {
			return largeObjectError(header.Length, limits)
		}
		start := &prefixBuffer{}
		if _, _, err := scanner.NextObject(start); err != nil {
			return brokenTransferError(err)
		}
		length := header.Length
		if header.Type == plumbing.OFSDeltaObject || header.Type == plumbing.REFDeltaObject {
			length = start.resultSize()
		}
		if length < 0 {
			return brokenTransferError(errors.New("a difference without a size"))
		}
		if length > limits.Object {
			return largeObjectError(length, limits)
		}
		if total += length; total > limits.Unpacked {
			return newError(ReasonTooLarge, "the repository is too large: more than %d MiB unpacked", limits.Unpacked/mebibyte)
		}
	}
	return nil
}

func largeObjectError(size int64, limits Limits) error {
	return newError(ReasonTooLarge, "a commit has a file of %s, and at most %s are transferred: find it by `git ls-tree -r -l COMMIT | sort -k4n | tail`, "+
		"then remove it by another commit", formatSize(size), formatSize(limits.Object))
}

// formatSize formats a size for people.
func formatSize(bytes int64) string {
	if bytes < 10*mebibyte && bytes%mebibyte != 0 {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/mebibyte)
	}
	return fmt.Sprintf("%d MiB", (bytes+mebibyte-1)/mebibyte)
}

func brokenTransferError(err error) error {
	return &Error{Reason: ReasonUnreachable, Message: "the transfer is broken", Err: newBoundedError(err)}
}

// prefixBuffer stores the first bytes of a stream. A delta begins with the sizes of its base and
// its result.
type prefixBuffer struct{ bytes.Buffer }

func (b *prefixBuffer) Write(p []byte) (int, error) {
	if room := 20 - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// resultSize returns the size of a delta's result, or a negative number if it is unknown.
func (b *prefixBuffer) resultSize() int64 {
	_, rest := readDeltaSize(b.Bytes())
	size, _ := readDeltaSize(rest)
	return size
}

func readDeltaSize(data []byte) (int64, []byte) {
	var size int64
	for i, part := range data {
		if i >= 8 {
			break
		}
		size |= int64(part&0x7f) << (7 * i)
		if part&0x80 == 0 {
			return size, data[i+1:]
		}
	}
	return -1, nil
}

// indexPack computes the ids of all objects and moves the pack into the cache.
func (c *gitCache) indexPack(ctx context.Context, file *os.File) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	writer := &idxfile.Writer{}
	parser, err := packfile.NewParser(packfile.NewScanner(file), writer)
	if err != nil {
		return err
	}
	var sum plumbing.Hash
	if err := panics.AsError(func() (err error) {
		sum, err = parser.Parse()
		return err
	})(); err != nil {
		return brokenTransferError(err)
	}
	if err := ctx.Err(); err != nil {
		return connectionError(ctx, "the transfer", err)
	}
	index, err := writer.Index()
	if err != nil {
		return brokenTransferError(err)
	}
	var encoded bytes.Buffer
	if _, err := idxfile.NewEncoder(&encoded).Encode(index); err != nil {
		return fmt.Errorf("store the transfer: %w", err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("store the transfer: %w", err)
	}
	if err := os.MkdirAll(c.packsDir(), 0o700); err != nil {
		return fmt.Errorf("store the transfer: %w", err)
	}
	name := "pack-" + sum.String()
	// The index comes last: a pack without one is ignored.
	if err := os.Rename(file.Name(), filepath.Join(c.packsDir(), name+".pack")); err != nil {
		return fmt.Errorf("store the transfer: %w", err)
	}
	if err := writeFile(c.packsDir(), name+".idx", &encoded); err != nil {
		return fmt.Errorf("store the transfer: %w", err)
	}
	c.objects.mutex.Lock()
	defer c.objects.mutex.Unlock()
	c.reopenStorage()
	return nil
}
