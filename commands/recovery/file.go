// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
)

// manifestName is the name of an archive's first file.
const manifestName = "manifest.json"

// Limits in bytes, so that a malicious file cannot exhaust memory. Objects in a cluster are not
// larger.
const (
	maxEntry = 4 << 20
	maxTotal = 1 << 30
)

// Seal writes an archive that is encrypted for the recipients. Nothing is written unencrypted.
func Seal(w io.Writer, a *Archive, recipients ...age.Recipient) error {
	if len(recipients) == 0 {
		return errors.New("a backup needs a recipient who can open it")
	}
	bodies := make([][]byte, len(a.Entries))
	a.Manifest.Entries = nil
	for i, e := range a.Entries {
		raw, err := e.encode()
		if err != nil {
			return err
		}
		bodies[i], a.Manifest.Entries = raw, append(a.Manifest.Entries, e.Item)
	}
	manifest, err := json.MarshalIndent(a.Manifest, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the manifest: %w", err)
	}
	sealed, err := age.Encrypt(w, recipients...)
	if err != nil {
		return fmt.Errorf("encrypting: %w", err)
	}
	packed := gzip.NewWriter(sealed)
	files := tar.NewWriter(packed)
	add := func(name string, raw []byte) error {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(raw)), ModTime: a.Manifest.Created.Truncate(time.Second)}
		if err := files.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if _, err := files.Write(raw); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		return nil
	}
	if err := add(manifestName, manifest); err != nil {
		return err
	}
	for i, e := range a.Entries {
		if err := add(e.Item.path(), bodies[i]); err != nil {
			return err
		}
	}
	for _, c := range []io.Closer{files, packed, sealed} {
		if err := c.Close(); err != nil {
			return fmt.Errorf("writing the end: %w", err)
		}
	}
	return nil
}

// DamagedError means that a file is not a complete backup.
type DamagedError struct{ cause error }

func (e *DamagedError) Error() string {
	return "it is not a backup, or is damaged: " + e.cause.Error()
}
func (e *DamagedError) Unwrap() error { return e.cause }

// LockedError means that no key opens a backup.
type LockedError struct{}

func (*LockedError) Error() string {
	return "no key opens it: give the age key of one of its recipients, in SOPS_AGE_KEY_FILE or SOPS_AGE_KEY"
}

// Open reads a whole archive. An entry that is missing, additional or differs from the manifest is
// an error.
func Open(r io.Reader, identities ...age.Identity) (*Archive, error) {
	in := bufio.NewReader(r)
	switch sealed, err := isAgeEncrypted(in); {
	case err != nil:
		return nil, fmt.Errorf("reading the backup: %w", err)
	case !sealed:
		return nil, ErrNoBackup
	case len(identities) == 0:
		return nil, &LockedError{}
	}
	plain, err := age.Decrypt(dearmor(in), identities...)
	if errors.As(err, new(*age.NoIdentityMatchError)) {
		return nil, &LockedError{}
	}
	if err != nil {
		return nil, &DamagedError{err}
	}
	a, err := readArchive(plain)
	if damaged := (*newerVersionError)(nil); err != nil && !errors.As(err, &damaged) {
		return nil, &DamagedError{err}
	}
	return a, err
}

// ErrNoBackup means that a file is not encrypted with age, as every backup is.
var ErrNoBackup = errors.New("it is not a backup of Pergola: give an age-encrypted file that pergola backup LANDSCAPE --to FILE has written")

// ageHeader is the prefix of binary age files in all versions of the format.
const ageHeader = "age-encryption.org/"

// isAgeEncrypted reports whether the input is encrypted with age.
func isAgeEncrypted(in *bufio.Reader) (bool, error) {
	for _, head := range []string{ageHeader, armor.Header} {
		begin, err := in.Peek(len(head))
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if string(begin) == head {
			return true, nil
		}
	}
	return false, nil
}

// dearmor reads both text and binary files.
func dearmor(in *bufio.Reader) io.Reader {
	if head, _ := in.Peek(len(armor.Header)); string(head) == armor.Header {
		return armor.NewReader(in)
	}
	return in
}

type newerVersionError struct{ version int }

func (e *newerVersionError) Error() string {
	return fmt.Sprintf("it has format version %d, but this program supports version %d: use the version of Pergola that created it, or a later one", e.version, Version)
}

func readArchive(plain io.Reader) (*Archive, error) {
	packed, err := gzip.NewReader(plain)
	if err != nil {
		return nil, err
	}
	files := tar.NewReader(io.LimitReader(packed, maxTotal))
	raw, err := readNextFile(files, manifestName)
	if err != nil {
		return nil, err
	}
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	switch {
	case head.Format != Format:
		return nil, fmt.Errorf("%s has format %q, not %q", manifestName, head.Format, Format)
	case head.Version != Version:
		return nil, &newerVersionError{head.Version}
	}
	a := &Archive{}
	if err := json.Unmarshal(raw, &a.Manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	}
	for _, item := range a.Manifest.Entries {
		raw, err := readNextFile(files, item.path())
		if err != nil {
			return nil, err
		}
		if checksum(raw) != item.SHA256 {
			return nil, fmt.Errorf("%s differs from its checksum in %s", item, manifestName)
		}
		e := &Entry{Item: item}
		if err := e.decode(raw); err != nil {
			return nil, err
		}
		a.Entries = append(a.Entries, e)
	}
	if header, err := files.Next(); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("it contains %s, which %s does not list", header.Name, manifestName)
	}
	// Read to the end, where the checksums are.
	if _, err := io.Copy(io.Discard, io.LimitReader(packed, maxEntry)); err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, plain); err != nil {
		return nil, err
	}
	return a, nil
}

// readNextFile reads the next file, which must have this name.
func readNextFile(files *tar.Reader, name string) ([]byte, error) {
	header, err := files.Next()
	if err != nil {
		return nil, fmt.Errorf("%s is missing: %w", name, err)
	}
	if header.Name != name {
		return nil, fmt.Errorf("it contains %s instead of %s", header.Name, name)
	}
	if header.Size > maxEntry && name != manifestName || header.Size > maxTotal {
		return nil, fmt.Errorf("%s is too large", name)
	}
	var out bytes.Buffer
	if _, err := io.Copy(&out, files); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out.Bytes(), nil
}

// WriteFile seals an archive into a file that only its owner can read. It writes the whole file or
// nothing.
func WriteFile(path string, a *Archive, recipients ...age.Recipient) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	defer func() {
		if err != nil {
			_ = temporary.Close()
			_ = os.Remove(temporary.Name())
		}
	}()
	out := bufio.NewWriter(temporary)
	if err := Seal(out, a, recipients...); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, step := range []func() error{out.Flush, temporary.Sync, temporary.Close} {
		if err := step(); err != nil {
			return fmt.Errorf("writing the backup: %w", err)
		}
	}
	if err := os.Rename(temporary.Name(), path); err != nil {
		return fmt.Errorf("writing the backup: %w", err)
	}
	return nil
}

// ReadFile opens an archive file.
func ReadFile(path string, identities ...age.Identity) (*Archive, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the backup: %w", err)
	}
	defer in.Close()
	a, err := Open(in, identities...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}
