package landscapes

import (
	"io/fs"
	"os"
	"path"
	"sync"
)

// folders reads files below a folder and refuses links that leave it, also while files are
// exchanged: os.Root walks through every folder of a path for that, each time. Folders that were
// used last stay open, so that a file costs the same at any depth.
type folders struct {
	rootFS
	root *os.Root

	mutex sync.Mutex
	open  map[string]*os.Root
}

// rootFS is what os.Root gives.
type rootFS interface {
	fs.StatFS
	fs.ReadFileFS
	fs.ReadDirFS
	fs.ReadLinkFS
}

// mostOpen is the number of folders that stay open.
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
	// What is wrong, and links to other folders, are the matter of the root.
	return f.rootFS.Open(name)
}

// folder gives an open folder, nil if it cannot be opened.
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
			other.Close() // whoever is using it goes by the root
		}
		clear(f.open)
	}
	f.open[name] = opened
	return opened
}
