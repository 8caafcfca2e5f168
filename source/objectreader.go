// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/pergola-dev/pergola/internal/panics"
)

// objectReader is a store for concurrent readers. An object that should exist and cannot be read is
// an Error of reason Damaged, also if go-git panics about a damaged file.
type objectReader struct {
	// mutex, because trees and stores of go-git cache objects without a lock.
	mutex  sync.Mutex
	storer storer.EncodedObjectStorer
	// advice names the store and says what to do.
	advice string
	// missingObjectHint explains why an object of an undamaged store is missing; it is empty if
	// there is no such reason.
	missingObjectHint string
	// knownHashes are existing objects, so that two revisions check shared objects once: go-git
	// opens a file for each check. It is nil if the store is used for long and may lose objects.
	knownHashes map[plumbing.Hash]bool
	// onError receives errors about objects that should exist and cannot be read.
	onError func(error)

	damagedMutex sync.Mutex
	damaged      error
}

// maxPreallocated limits the memory that is allocated before an object is read: a damaged one may
// declare any size.
const maxPreallocated = mebibyte

// withStore runs work with the store, one caller at a time.
func (o *objectReader) withStore(work func() error) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.recordDamage(panics.AsError(work)())
}

// tree reads a folder from the store.
func (o *objectReader) tree(hash plumbing.Hash) (*treeFolder, error) {
	var entries []object.TreeEntry
	err := o.withStore(func() error {
		tree, err := object.GetTree(o.storer, hash)
		if err == nil {
			entries = tree.Entries
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return &treeFolder{entries: entries}, nil
}

func (o *objectReader) blob(hash plumbing.Hash) ([]byte, error) {
	return o.readContent(plumbing.BlobObject, hash)
}

// readContent reads the raw content of an object.
func (o *objectReader) readContent(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	var data bytes.Buffer
	err := o.withStore(func() error {
		encoded, err := o.storer.EncodedObject(kind, hash)
		if err != nil {
			return fmt.Errorf("read %s: %w", hash, err)
		}
		reader, err := encoded.Reader()
		if err != nil {
			return fmt.Errorf("read %s: %w", hash, err)
		}
		defer reader.Close()
		data.Grow(int(min(encoded.Size(), maxPreallocated)))
		if _, err := data.ReadFrom(io.LimitReader(reader, encoded.Size())); err != nil {
			return fmt.Errorf("read %s: %w", hash, err)
		}
		if int64(data.Len()) < encoded.Size() {
			return fmt.Errorf("read %s: %w", hash, io.ErrUnexpectedEOF)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

func (o *objectReader) commit(hash plumbing.Hash) (*object.Commit, error) {
	var commit *object.Commit
	err := o.withStore(func() (err error) {
		if commit, err = object.GetCommit(o.storer, hash); err != nil {
			return fmt.Errorf("read commit %s: %w", hash, err)
		}
		return nil
	})
	return commit, err
}

func (o *objectReader) size(hash plumbing.Hash) (int64, error) {
	var size int64
	err := o.withStore(func() (err error) {
		size, err = o.storer.EncodedObjectSize(hash)
		return err
	})
	return size, err
}

// hasObject reports whether an object exists. A damaged store has nothing.
func (o *objectReader) hasObject(hash plumbing.Hash) (there bool) {
	_ = o.withStore(func() error {
		if there = o.knownHashes[hash]; there {
			return nil
		}
		err := o.storer.HasEncodedObject(hash)
		if there = err == nil; errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil
		}
		if there && o.knownHashes != nil {
			o.knownHashes[hash] = true
		}
		return err
	})
	return there
}

// recordDamage records that the store is damaged, and returns an error with advice.
func (o *objectReader) recordDamage(err error) error {
	if err == nil {
		return nil
	}
	if o.onError != nil {
		o.onError(err)
	}
	lost := &Error{Reason: ReasonDamaged, Message: o.advice, Err: newBoundedError(err)}
	if o.missingObjectHint != "" && errors.Is(err, plumbing.ErrObjectNotFound) {
		lost = &Error{Reason: ReasonIncomplete, Message: o.missingObjectHint, Err: newBoundedError(err)}
	}
	o.damagedMutex.Lock()
	defer o.damagedMutex.Unlock()
	if o.damaged == nil {
		o.damaged = lost
	}
	return lost
}

// firstDamage returns the first error about an unreadable object, or nil.
func (o *objectReader) firstDamage() error {
	o.damagedMutex.Lock()
	defer o.damagedMutex.Unlock()
	return o.damaged
}

// Damaged returns an error if an object of the tree, or of another tree of the same store, should
// exist but could not be read. Then earlier results may be incomplete.
func (t *TreeFS) Damaged() error {
	for _, module := range t.submodules {
		if err := module.Damaged(); err != nil {
			return err
		}
	}
	return t.objects.firstDamage()
}

// damagedRepositoryAdvice returns the advice about a damaged repository on disk.
func damagedRepositoryAdvice(root string) string {
	return fmt.Sprintf("the Git repository %s is damaged: `git fsck` lists the missing objects; fetch them again, or clone the repository again", root)
}
