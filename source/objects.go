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

// objects is a store that is read from several sides. What cannot be read although it should be
// there is an Error of reason Damaged, also where go-git panics: of a damaged file it believes
// much.
type objects struct {
	// mutex, because trees and stores of go-git keep what they found without one.
	mutex  sync.Mutex
	storer storer.EncodedObjectStorer
	// advice says of which store they are and what to do.
	advice string
	// incomplete says why an object may be missing although nothing is damaged; empty where there
	// is no such reason.
	incomplete string
	// seen are objects that are known to be there, so that two revisions ask for what they share
	// once: each time go-git looks for a file. Nil where the store is used for long, and may lose
	// some.
	seen map[plumbing.Hash]bool
	// onError hears of objects that should be there and cannot be read.
	onError func(error)

	lostMutex sync.Mutex
	lost      error
}

// mostAtOnce is how much memory an object gets before anything of it is there: a damaged one says
// any size.
const mostAtOnce = mebibyte

// read works with the store, one at a time.
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

// content reads an object as it was sent.
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

// has tells whether an object is there. A damaged store has nothing.
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

// failed notes that something is damaged, and says what to do.
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

// damage is the first thing that could not be read; nil while there is none.
func (o *objects) damage() error {
	o.lostMutex.Lock()
	defer o.lostMutex.Unlock()
	return o.lost
}

// Damaged says whether something of the tree, or of another one of the same store, could not be
// read although it should be there: what was read of it may lack something then.
func (t *TreeFS) Damaged() error {
	for _, module := range t.modules {
		if err := module.Damaged(); err != nil {
			return err
		}
	}
	return t.objects.damage()
}

// damagedRepository is the advice about a repository on disk.
func damagedRepository(root string) string {
	return fmt.Sprintf("the Git repository %s is damaged: git fsck says what it lacks; fetch it again, or clone it anew", root)
}
