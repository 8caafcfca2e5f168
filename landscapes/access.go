// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/pergola-dev/pergola/schemas"
)

// checkLink reports symbolic links that leave the layer, and returns whether the link is sound.
// Links inside are not followed, because their targets are read under their own names;
// landscape.yaml may be such a link and is followed.
func (l *layer) checkLink(name string) bool {
	target, err := fs.ReadLink(l.fs, name)
	if err != nil {
		l.report(name, 0, 0, "landscape/link", schemas.TypeForbidden, "is a symbolic link that cannot be read")
		return false
	}
	resolved := path.Join(path.Dir(name), target)
	if path.IsAbs(target) || !isWithin(l.folder, resolved) {
		l.report(name, 0, 0, "landscape/link", schemas.TypeForbidden, "is a symbolic link to %q, which leaves the landscape; copy the file, or make its folder a layer", target)
		return false
	}
	if _, err := fs.Stat(l.fs, name); err != nil {
		l.report(name, 0, 0, "landscape/link", schemas.TypeInvalid, "is a symbolic link to %q, which does not exist", target)
		return false
	}
	return true
}

// isWithin reports whether a path in the repository is the folder or lies below it.
func isWithin(folder, name string) bool {
	return folder == "." && fs.ValidPath(name) || name == folder || strings.HasPrefix(name, folder+"/")
}

// readTextFile returns the content of a file within the limits. It reports any problem and then
// returns false.
func (l *loader) readTextFile(name string) ([]byte, bool) {
	if !l.countFile(name) {
		return nil, false
	}
	// Opening a named pipe waits for a writer, so check the file mode first.
	if info, err := fs.Stat(l.fs, name); err == nil && !info.Mode().IsRegular() {
		l.reportIrregular(name, info.Mode())
		return nil, false
	}
	data, ok := l.readBytes(name)
	return data, ok && l.requireText(name, data)
}

// countFile counts a file, and returns false beyond the limit.
func (l *loader) countFile(name string) bool {
	if l.files++; l.files > l.limits.Files {
		if !l.isLimitReported {
			l.isLimitReported = true
			l.report(name, 0, 0, "landscape/limits", schemas.TypeTooMany, "the landscape has more than %d files; this one and those after it are not read", l.limits.Files)
		}
		return false
	}
	return true
}

// readBytes returns the content of a regular file that is not too large.
func (l *loader) readBytes(name string) ([]byte, bool) {
	file, err := l.fs.Open(name)
	if err != nil {
		l.report(name, 0, 0, "landscape/file", schemas.TypeInvalid, "cannot be read: %s", ioErrorText(err))
		return nil, false
	}
	defer file.Close()
	var data bytes.Buffer
	size := int64(0)
	if info, err := file.Stat(); err == nil {
		size = info.Size()
	}
	if size <= l.limits.FileSize {
		data.Grow(int(size) + bytes.MinRead)
	}
	_, err = data.ReadFrom(io.LimitReader(file, l.limits.FileSize+1))
	if err != nil {
		l.report(name, 0, 0, "landscape/file", schemas.TypeInvalid, "cannot be read: %s", ioErrorText(err))
		return nil, false
	}
	if int64(data.Len()) > l.limits.FileSize {
		l.reportTooLong(name, max(size, int64(data.Len())))
		return nil, false
	}
	return data.Bytes(), true
}

// reportTooLong reports a file that is larger than the limit.
func (l *loader) reportTooLong(name string, size int64) {
	l.report(name, 0, 0, "landscape/limits", schemas.TypeTooLong, "is larger than %s: it has %s; make several files of it", formatSize(l.limits.FileSize), formatSize(size))
}

// formatSize formats a size for people. It rounds up, so that a size above a limit reads as larger.
func formatSize(size int64) string {
	if size < 1<<20 {
		return fmt.Sprintf("%d bytes", size)
	}
	return strconv.FormatFloat(math.Ceil(float64(size)/(1<<20)*10)/10, 'f', -1, 64) + " MiB"
}

func (l *loader) requireText(name string, data []byte) bool {
	p := checkText(name, data)
	if p != nil {
		l.report(name, p.line, p.column, "landscape/file", schemas.TypeInvalid, "%s", p.message)
	}
	return p == nil
}

// ioErrorText returns the text of an I/O error without the path, which may be a local path.
func ioErrorText(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

// reportIrregular reports an entry that is neither a file nor a folder. It never opens the entry:
// reading it may block forever or have side effects.
func (l *loader) reportIrregular(name string, mode fs.FileMode) {
	what := "not a regular file"
	switch {
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	l.report(name, 0, 0, "landscape/file", schemas.TypeInvalid, "is %s, where a file is expected", what)
}
