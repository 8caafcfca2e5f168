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

// readFiles reads the files of the layer concurrently.
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
	if err := panics.AsError(group.Wait)(); err != nil {
		return err
	}
	for _, part := range parts {
		if part != nil {
			l.violations = append(l.violations, part.violations...)
		}
	}
	return nil
}

// part returns a loader for one file, with its own findings.
func (l *loader) part() *loader {
	return &loader{ctx: l.ctx, fs: l.fs, home: l.home, opts: l.opts, limits: l.limits, keys: l.keys}
}

// declarations returns the objects of a YAML or JSON file. If the cache has its objects, without
// findings, their content is read only on demand.
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

// identifiedFS identifies file content without reading it, as Git does.
type identifiedFS interface {
	// ContentID is the same for files of the same content; false if it is unknown.
	ContentID(name string) (string, bool)
}

// identified returns the cache key of a file's content identifier, on a file system with
// identifiers.
func (l *loader) identified(name string) (kept.Key, bool) {
	fsys, ok := l.fs.(identifiedFS)
	// a name that is not UTF-8 cannot be opened
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

// unread returns the declarations of a file whose content identifier is cached, without reading it.
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
			// Continuing without it would look like removed objects.
			panic(l.lost(name))
		}
		return data
	}
	return l.outlined(name, true, read, key, outline)
}

// place makes positions in an object available on demand: storing the texts of all files needs much
// memory. Without content identifiers (identified) the texts stay in memory, as the file may
// change.
func (l *loader) place(name string, identified bool, i int, content reader) reader {
	if !identified {
		return content
	}
	tree := sync.OnceValue(func() *place {
		part := l.part()
		data, ok := part.readBytes(name)
		if !ok {
			return nil // callers then use the place of the object
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

// packContents packs the objects of a file. It drops the file's text if that can be read again.
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

// keys identify the private keys for decryption without revealing them.
type keys struct {
	public string
	// known is false if a key of another type has no public form here.
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

// keyOf returns a digest of all inputs of a file's declarations.
func (l *loader) keyOf(name string, data []byte) kept.Key {
	hash := sha256.New()
	hash.Write(l.settings(name))
	hash.Write(data)
	return kept.Key(hash.Sum(nil))
}

// settings returns the inputs of a file's declarations besides its content.
func (l *loader) settings(name string) []byte {
	var w kept.Writer
	w.Text("file")
	w.Text(path.Ext(name))
	w.Uint(uint64(l.limits.Depth))
	w.Uint(uint64(l.limits.Values))
	w.Text(l.keys.public)
	return w.Bytes()
}

// digestOf returns the digest of one object of a file.
func digestOf(file kept.Key, i int) kept.Key {
	var w kept.Writer
	w.Key(file)
	w.Uint(uint64(i))
	return sha256.Sum256(w.Bytes())
}

// outlineOf encodes which objects a file declares.
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

// outlined decodes an outline into declarations of a file.
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
