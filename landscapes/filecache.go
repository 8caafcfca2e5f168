// SPDX-License-Identifier: Apache-2.0

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
	"github.com/pergola-dev/pergola/schemas/resultcache"
)

// readFiles reads the files of the layer concurrently.
func (l *layer) readFiles() error {
	parts := make([]*loader, len(l.inputs))
	var group panics.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range l.inputs {
		r := &l.inputs[i]
		if r.file == "" {
			continue
		}
		parts[i] = l.fileLoader()
		group.Go(func() error {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			r.found = parts[i].loadFile(r.file)
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

// fileLoader returns a loader for one file, with its own findings.
func (l *loader) fileLoader() *loader {
	return &loader{ctx: l.ctx, fs: l.fs, home: l.home, opts: l.opts, limits: l.limits, keys: l.keys}
}

// loadFile returns the objects of a YAML or JSON file. If the cache has its objects, without
// findings, their content is read only on demand.
func (l *loader) loadFile(name string) []Declaration {
	if found, ok := l.loadCached(name); ok {
		return found
	}
	data, ok := l.readBytes(name)
	if !ok {
		return nil
	}
	if l.opts.ResultCache == nil {
		if !l.requireText(name, data) {
			return nil
		}
		return l.parseYAML(name, data)
	}
	key := l.fileKey(name, data)
	id, identified := l.contentIDKey(name)
	if identified {
		l.opts.ResultCache.Put(id, key[:])
	}
	if outline, ok := l.opts.ResultCache.Get(key); ok {
		if found, ok := l.decodeFileIndex(name, identified, func() []byte { return data }, key, outline); ok {
			return found
		}
	}
	if !l.requireText(name, data) {
		return nil
	}
	found := l.parseYAML(name, data)
	if len(l.violations) == 0 && (l.keys.isComplete || !slices.ContainsFunc(found, isEncryptedSecret)) {
		l.opts.ResultCache.Put(key, encodeFileIndex(found))
		contents := packContents(found, identified)
		file := l.contentsOf(name, identified, key)
		file.load(func() []contentReader { return contents })
		for i := range found {
			found[i].digest, found[i].content = objectDigest(key, i), l.withLazyPositions(name, identified, i, func(p contentUse) declaredContent { return file.load(nil)[i](p) })
		}
	}
	return found
}

// contentIDFS identifies file content without reading it, as Git does.
type contentIDFS interface {
	// ContentID returns an id that files of the same content share, or false if it is unknown.
	ContentID(name string) (string, bool)
}

// contentIDKey returns the cache key of a file's content identifier, on a file system with
// identifiers.
func (l *loader) contentIDKey(name string) (resultcache.Key, bool) {
	fsys, ok := l.fs.(contentIDFS)
	// a name that is not UTF-8 cannot be opened
	if !ok || l.opts.ResultCache == nil || !fs.ValidPath(name) {
		return resultcache.Key{}, false
	}
	id, ok := fsys.ContentID(name)
	if !ok {
		return resultcache.Key{}, false
	}
	var w resultcache.Writer
	w.Text("content")
	w.Text(id)
	w.Uint(uint64(l.limits.FileSize))
	w.Text(string(l.fileKeySettings(name)))
	return sha256.Sum256(w.Bytes()), true
}

// loadCached returns the declarations of a file whose content identifier is cached, without reading
// it.
func (l *loader) loadCached(name string) ([]Declaration, bool) {
	id, ok := l.contentIDKey(name)
	if !ok {
		return nil, false
	}
	is, ok := l.opts.ResultCache.Get(id)
	if !ok || len(is) != len(resultcache.Key{}) {
		return nil, false
	}
	key := resultcache.Key(is)
	outline, ok := l.opts.ResultCache.Get(key)
	if !ok {
		return nil, false
	}
	read := func() []byte {
		data, ok := l.fileLoader().readBytes(name)
		if !ok {
			// Continuing without it would look like removed objects.
			panic(l.newUnreadableFileError(name))
		}
		return data
	}
	return l.decodeFileIndex(name, true, read, key, outline)
}

// withLazyPositions makes positions in an object available on demand: storing the texts of all
// files needs much memory. Without content identifiers (identified) the texts stay in memory,
// because the file may change.
func (l *loader) withLazyPositions(name string, identified bool, i int, content contentReader) contentReader {
	if !identified {
		return content
	}
	tree := sync.OnceValue(func() *positionTree {
		part := l.fileLoader()
		data, ok := part.readBytes(name)
		if !ok {
			return nil // callers then use the place of the object
		}
		found := part.parseYAML(name, data)
		if i >= len(found) {
			return nil
		}
		return found[i].content(useShared).origins[0].tree()
	})
	return func(p contentUse) declaredContent {
		w := content(p)
		w.origins = []origin{{tree: tree}}
		return w
	}
}

// packContents packs the objects of a file. It drops the file's text if that can be read again.
func packContents(found []Declaration, again bool) []contentReader {
	out := make([]contentReader, len(found))
	for i := range found {
		w := found[i].content(useShared)
		if again {
			w.origins = nil
		}
		out[i] = w.pack()
	}
	return out
}

func isEncryptedSecret(d Declaration) bool {
	return d.Secret == SecretEncrypted || d.Secret == SecretDecrypted
}

// keySet identifies the private keys for decryption without revealing them.
type keySet struct {
	public string
	// isComplete is false if a key of another type has no public form here.
	isComplete bool
}

func newKeySet(identities []age.Identity) keySet {
	k := keySet{isComplete: true}
	for _, identity := range identities {
		native, ok := identity.(*age.X25519Identity)
		if !ok {
			k.isComplete = false
			continue
		}
		k.public += native.Recipient().String() + " "
	}
	return k
}

// fileKey returns a digest of all inputs of a file's declarations.
func (l *loader) fileKey(name string, data []byte) resultcache.Key {
	hash := sha256.New()
	hash.Write(l.fileKeySettings(name))
	hash.Write(data)
	return resultcache.Key(hash.Sum(nil))
}

// fileKeySettings returns the inputs of a file's declarations besides its content.
func (l *loader) fileKeySettings(name string) []byte {
	var w resultcache.Writer
	w.Text("file")
	w.Text(path.Ext(name))
	w.Uint(uint64(l.limits.Depth))
	w.Uint(uint64(l.limits.Values))
	w.Text(l.keys.public)
	return w.Bytes()
}

// objectDigest returns the digest of one object of a file.
func objectDigest(file resultcache.Key, i int) resultcache.Key {
	var w resultcache.Writer
	w.Key(file)
	w.Uint(uint64(i))
	return sha256.Sum256(w.Bytes())
}

// encodeFileIndex encodes which objects a file declares.
func encodeFileIndex(found []Declaration) []byte {
	var w resultcache.Writer
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

// decodeFileIndex decodes an outline into declarations of a file.
func (l *loader) decodeFileIndex(name string, identified bool, read func() []byte, key resultcache.Key, outline []byte) ([]Declaration, bool) {
	r := resultcache.NewReader(outline)
	file := l.contentsOf(name, identified, key)
	all := func() []contentReader {
		return file.load(func() []contentReader {
			found := l.fileLoader().parseYAML(name, read())
			return packContents(found, identified)
		})
	}
	found := make([]Declaration, r.Count())
	for i := range found {
		found[i] = Declaration{
			kind:      schema.GroupVersionKind{Group: r.Text(), Version: r.Text(), Kind: r.Text()},
			namespace: r.Text(), name: r.Text(), Secret: SecretState(r.Text()),
			File: l.relative(name), Line: int(r.Uint()), Column: int(r.Uint()),
			digest: objectDigest(key, i), content: l.withLazyPositions(name, identified, i, func(p contentUse) declaredContent { return all()[i](p) }),
		}
	}
	return found, r.IsComplete()
}
