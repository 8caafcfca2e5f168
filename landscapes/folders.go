package landscapes

import (
	"io/fs"
	"os"
	"path"
	"sync"
)

// folders reads files below a folder and refuses links that leave it, even if files change at the
// same time. os.Root checks each folder of a path on every access. Recently used folders stay open,
// so that the depth of a file does not matter.
type folders struct {
	rootFS
	root *os.Root

	mutex sync.Mutex
	open  map[string]*os.Root
}

// rootFS is the interface of the file system of os.Root.
type rootFS interface {
	fs.StatFS
	fs.ReadFileFS
	fs.ReadDirFS
	fs.ReadLinkFS
}

// mostOpen is the largest number of folders that stay open.
const mostOpen = 16

func newFolders(root *os.Root) fs.FS {
	all, ok := root.FS().(rootFS)
	if !ok {
		return root.FS()
	}
	return &folders{rootFS: all, root: root, open: map[string]*os.Root{}}
}

// Open implements fs.FS.
func (f *folders) Open(name string) (fs.File, error) {
	if folder := path.Dir(name); fs.ValidPath(name) && folder != "." {
		if at := f.folder(folder); at != nil {
			if file, err := at.Open(path.Base(name)); err == nil {
				return file, nil
			}
		}
	}
	// The root reports errors, and follows links to other folders.
	return f.rootFS.Open(name)
}

// folder returns an open folder, or nil if it cannot be opened.
func (f *folders) folder(name string) *os.Root {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if known := f.open[name]; known != nil {
		return known
	}
	opened, err := f.root.OpenRoot(name)
	if err != nil {
		return nil
	}
	if len(f.open) >= mostOpen {
		for _, other := range f.open {
			other.Close() // concurrent users fall back to the root
		}
		clear(f.open)
	}
	f.open[name] = opened
	return opened
}
