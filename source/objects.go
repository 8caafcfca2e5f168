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

// objects is a store for concurrent readers. An object that should exist and cannot be read is an
// Error of reason Damaged, also if go-git panics about a damaged file.
type objects struct {
	// mutex, because trees and stores of go-git cache objects without a lock.
	mutex  sync.Mutex
	storer storer.EncodedObjectStorer
	// advice names the store and says what to do.
	advice string
	// incomplete explains why an object of an undamaged store is missing; empty if there is no such
	// reason.
	incomplete string
	// seen are existing objects, so that two revisions check shared objects once: go-git opens a
	// file for each check. Nil if the store is used for long and may lose objects.
	seen map[plumbing.Hash]bool
	// onError receives errors about objects that should exist and cannot be read.
	onError func(error)

	lostMutex sync.Mutex
	lost      error
}

// mostAtOnce limits the memory that is allocated before an object is read: a damaged one may
// declare any size.
const mostAtOnce = mebibyte

// read runs work with the store, one caller at a time.
func (o *objects) read(work func() error) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.failed(panics.Safe(work)())
}

// tree reads a folder from the store.
func (o *objects) tree(hash plumbing.Hash) (*folder, error) {
	var entries []object.TreeEntry
	err := o.read(func() error {
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
	return &folder{entries: entries}, nil
}

func (o *objects) blob(hash plumbing.Hash) ([]byte, error) {
	return o.content(plumbing.BlobObject, hash)
}

// content reads the raw content of an object.
func (o *objects) content(kind plumbing.ObjectType, hash plumbing.Hash) ([]byte, error) {
	var data bytes.Buffer
	err := o.read(func() error {
		encoded, err := o.storer.EncodedObject(kind, hash)
		if err != nil {
			return fmt.Errorf("read %s: %w", hash, err)
		}
		reader, err := encoded.Reader()
		if err != nil {
			return fmt.Errorf("read %s: %w", hash, err)
		}
		defer reader.Close()
		data.Grow(int(min(encoded.Size(), mostAtOnce)))
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

func (o *objects) commit(hash plumbing.Hash) (*object.Commit, error) {
	var commit *object.Commit
	err := o.read(func() (err error) {
		if commit, err = object.GetCommit(o.storer, hash); err != nil {
			return fmt.Errorf("read commit %s: %w", hash, err)
		}
		return nil
	})
	return commit, err
}

func (o *objects) size(hash plumbing.Hash) (int64, error) {
	var size int64
	err := o.read(func() (err error) {
		size, err = o.storer.EncodedObjectSize(hash)
		return err
	})
	return size, err
}

// has reports whether an object exists. A damaged store has nothing.
func (o *objects) has(hash plumbing.Hash) (there bool) {
	_ = o.read(func() error {
		if there = o.seen[hash]; there {
			return nil
		}
		err := o.storer.HasEncodedObject(hash)
		if there = err == nil; errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil
		}
		if there && o.seen != nil {
			o.seen[hash] = true
		}
		return err
	})
	return there
}

// failed records that the store is damaged, and returns an error with advice.
func (o *objects) failed(err error) error {
	if err == nil {
		return nil
	}
	if o.onError != nil {
		o.onError(err)
	}
	lost := &Error{Reason: ReasonDamaged, Message: o.advice, Err: plain(err)}
	if o.incomplete != "" && errors.Is(err, plumbing.ErrObjectNotFound) {
		lost = &Error{Reason: ReasonIncomplete, Message: o.incomplete, Err: plain(err)}
	}
	o.lostMutex.Lock()
	defer o.lostMutex.Unlock()
	if o.lost == nil {
		o.lost = lost
	}
	return lost
}

// damage returns the first error about an unreadable object, or nil.
func (o *objects) damage() error {
	o.lostMutex.Lock()
	defer o.lostMutex.Unlock()
	return o.lost
}

// Damaged returns an error if an object of the tree, or of another tree of the same store, should
// exist but could not be read. Then earlier results may be incomplete.
func (t *TreeFS) Damaged() error {
	for _, module := range t.modules {
		if err := module.Damaged(); err != nil {
			return err
		}
	}
	return t.objects.damage()
}

// damagedRepository returns the advice about a damaged repository on disk.
func damagedRepository(root string) string {
	return fmt.Sprintf("the Git repository %s is damaged: git fsck says what it lacks; fetch it again, or clone it anew", root)
}
