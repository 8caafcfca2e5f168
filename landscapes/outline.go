package landscapes

import (
	"crypto/sha256"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"sync"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pergola-dev/pergola/internal/panics"
	"github.com/pergola-dev/pergola/schemas/kept"
)

// readFiles reads the files of the layer, several at a time.
func (l *layer) readFiles() error {
	parts := make([]*loader, len(l.readings))
	var group panics.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range l.readings {
		r := &l.readings[i]
		if r.file == "" {
			continue
		}
		parts[i] = l.part()
		group.Go(func() error {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			r.found = parts[i].declarations(r.file)
			return nil
		})
	}
	if err := panics.Safe(group.Wait)(); err != nil {
		return err
	}
	for _, part := range parts {
		if part != nil {
			l.violations = append(l.violations, part.violations...)
		}
	}
	return nil
}

// part is a loader for one file, with findings of its own.
func (l *loader) part() *loader {
	return &loader{ctx: l.ctx, fs: l.fs, home: l.home, opts: l.opts, limits: l.limits, keys: l.keys}
}

// declarations gives the objects of a YAML or JSON file. If it is known what the file declares, and
// that nothing is wrong with it, the content is left for whoever asks for it.
func (l *loader) declarations(name string) []Declaration {
	if found, ok := l.unread(name); ok {
		return found
	}
	data, ok := l.readBytes(name)
	if !ok {
		return nil
	}
	if l.opts.Kept == nil {
		if !l.isText(name, data) {
			return nil
		}
		return l.parseYAML(name, data)
	}
	key := l.keyOf(name, data)
	id, identified := l.identified(name)
	if identified {
		l.opts.Kept.Put(id, key[:])
	}
	if outline, ok := l.opts.Kept.Get(key); ok {
		if found, ok := l.outlined(name, identified, func() []byte { return data }, key, outline); ok {
			return found
		}
	}
	if !l.isText(name, data) {
		return nil
	}
	found := l.parseYAML(name, data)
	if len(l.violations) == 0 && (l.keys.known || !slices.ContainsFunc(found, isSealed)) {
		l.opts.Kept.Put(key, outlineOf(found))
		contents := packContents(found, identified)
		file := l.contentsOf(name, identified, key)
		file.read(func() []reader { return contents })
		for i := range found {
			found[i].digest, found[i].content = digestOf(key, i), l.place(name, identified, i, func(p purpose) written { return file.read(nil)[i](p) })
		}
	}
	return found
}

// identifiedFS knows the content of files apart without reading them, as Git does.
type identifiedFS interface {
	// ContentID is the same for files of the same content; false where it is not known.
	ContentID(name string) (string, bool)
}

// identified is under which key it is kept what the content of a file is, for file systems that
// know.
func (l *loader) identified(name string) (kept.Key, bool) {
	fsys, ok := l.fs.(identifiedFS)
	// as a name of bytes that are no text: such a file cannot be opened
	if !ok || l.opts.Kept == nil || !fs.ValidPath(name) {
		return kept.Key{}, false
	}
	id, ok := fsys.ContentID(name)
	if !ok {
		return kept.Key{}, false
	}
	var w kept.Writer
	w.Text("content")
	w.Text(id)
	w.Uint(uint64(l.limits.FileSize))
	w.Text(string(l.settings(name)))
	return sha256.Sum256(w.Bytes()), true
}

// unread gives the declarations of a file whose content is known by its identifier. It is read by
// whoever asks for content.
func (l *loader) unread(name string) ([]Declaration, bool) {
	id, ok := l.identified(name)
	if !ok {
		return nil, false
	}
	is, ok := l.opts.Kept.Get(id)
	if !ok || len(is) != len(kept.Key{}) {
		return nil, false
	}
	key := kept.Key(is)
	outline, ok := l.opts.Kept.Get(key)
	if !ok {
		return nil, false
	}
	read := func() []byte {
		data, ok := l.part().readBytes(name)
		if !ok {
			// Going on without it would look as if the objects were removed.
			panic(l.lost(name))
		}
		return data
	}
	return l.outlined(name, true, read, key, outline)
}

// place lets the places in an object be found in its file when somebody asks for one, which few do:
// to keep the texts of all files for that takes much memory. They are left where the file system
// does not know contents apart (identified), as a file may be another one by then.
func (l *loader) place(name string, identified bool, i int, content reader) reader {
	if !identified {
		return content
	}
	tree := sync.OnceValue(func() *place {
		part := l.part()
		data, ok := part.readBytes(name)
		if !ok {
			return nil // the place is that of the object then
		}
		found := part.parseYAML(name, data)
		if i >= len(found) {
			return nil
		}
		return found[i].content(toRead).origins[0].tree()
	})
	return func(p purpose) written {
		w := content(p)
		w.origins = []origin{{tree: tree}}
		return w
	}
}

// packContents gives the contents of the objects of a file, without its text where that can be read
// again.
func packContents(found []Declaration, again bool) []reader {
	out := make([]reader, len(found))
	for i := range found {
		w := found[i].content(toRead)
		if again {
			w.origins = nil
		}
		out[i] = w.pack()
	}
	return out
}

func isSealed(d Declaration) bool { return d.Secret == SecretEncrypted || d.Secret == SecretDecrypted }

// keys are the private keys that there are to decrypt with, in a form that tells them apart and
// keeps them secret.
type keys struct {
	public string
	// known is false if there is a key that cannot be told apart from others.
	known bool
}

func keysOf(identities []age.Identity) keys {
	k := keys{known: true}
	for _, identity := range identities {
		native, ok := identity.(*age.X25519Identity)
		if !ok {
			k.known = false
			continue
		}
		k.public += native.Recipient().String() + " "
	}
	return k
}

// keyOf is the digest of everything that the declarations of a file depend on.
func (l *loader) keyOf(name string, data []byte) kept.Key {
	hash := sha256.New()
	hash.Write(l.settings(name))
	hash.Write(data)
	return kept.Key(hash.Sum(nil))
}

// settings are what the declarations of a file depend on besides its content.
func (l *loader) settings(name string) []byte {
	var w kept.Writer
	w.Text("file")
	w.Text(path.Ext(name))
	w.Uint(uint64(l.limits.Depth))
	w.Uint(uint64(l.limits.Values))
	w.Text(l.keys.public)
	return w.Bytes()
}

// digestOf is that of the content of one object of a file.
func digestOf(file kept.Key, i int) kept.Key {
	var w kept.Writer
	w.Key(file)
	w.Uint(uint64(i))
	return sha256.Sum256(w.Bytes())
}

// outlineOf says what a file declares.
func outlineOf(found []Declaration) []byte {
	var w kept.Writer
	w.Uint(uint64(len(found)))
	for i := range found {
		d := &found[i]
		for _, text := range []string{d.kind.Group, d.kind.Version, d.kind.Kind, d.namespace, d.name, string(d.Secret)} {
			w.Text(text)
		}
		w.Uint(uint64(d.Line))
		w.Uint(uint64(d.Column))
	}
	return w.Bytes()
}

// outlined gives the declarations of a file by its outline.
func (l *loader) outlined(name string, identified bool, read func() []byte, key kept.Key, outline []byte) ([]Declaration, bool) {
	r := kept.NewReader(outline)
	file := l.contentsOf(name, identified, key)
	all := func() []reader {
		return file.read(func() []reader {
			found := l.part().parseYAML(name, read())
			return packContents(found, identified)
		})
	}
	found := make([]Declaration, r.Count())
	for i := range found {
		found[i] = Declaration{
			kind:      schema.GroupVersionKind{Group: r.Text(), Version: r.Text(), Kind: r.Text()},
			namespace: r.Text(), name: r.Text(), Secret: SecretState(r.Text()),
			File: l.relative(name), Line: int(r.Uint()), Column: int(r.Uint()),
			digest: digestOf(key, i), content: l.place(name, identified, i, func(p purpose) written { return all()[i](p) }),
		}
	}
	return found, r.Whole()
}
