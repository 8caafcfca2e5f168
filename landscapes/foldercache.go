// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"io/fs"
	"os"
	"path"
	"sync"
)

// folderCache reads files below a folder and refuses links that leave it, even if files change at
// the same time. os.Root checks each folder of a path on every access. Recently used folders stay
// open, so that the depth of a file does not matter.
type folderCache struct {
	rootFS
	root *os.Root

	mutex     sync.Mutex
	openRoots map[string]*os.Root
}

// rootFS is the interface of the file system of os.Root.
type rootFS interface {
	fs.StatFS
	fs.ReadFileFS
	fs.ReadDirFS
	fs.ReadLinkFS
}

// maxOpenFolders is the largest number of folders that stay open.
const maxOpenFolders = 16

func newFolderCache(root *os.Root) fs.FS {
	all, ok := root.FS().(rootFS)
	if !ok {
		return root.FS()
	}
	return &folderCache{rootFS: all, root: root, openRoots: map[string]*os.Root{}}
}

// Open implements fs.FS.
func (f *folderCache) Open(name string) (fs.File, error) {
	if folder := path.Dir(name); fs.ValidPath(name) && folder != "." {
		if at := f.openFolder(folder); at != nil {
			if file, err := at.Open(path.Base(name)); err == nil {
				return file, nil
			}
		}
	}
	// The root reports errors, and follows links to other folders.
	return f.rootFS.Open(name)
}

// openFolder returns an open folder, or nil if it cannot be opened.
func (f *folderCache) openFolder(name string) *os.Root {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if known := f.openRoots[name]; known != nil {
		return known
	}
	opened, err := f.root.OpenRoot(name)
	if err != nil {
		return nil
	}
	if len(f.openRoots) >= maxOpenFolders {
		for _, other := range f.openRoots {
			other.Close() // concurrent users fall back to the root
		}
		clear(f.openRoots)
	}
	f.openRoots[name] = opened
	return opened
}
