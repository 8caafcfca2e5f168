// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pergola-dev/pergola/landscapes"
)

const hiddenValue = "hunter2-is-the-value"

func sampleArchive() *Archive {
	entry := func(kind, name string, sort Origin, created time.Time) *Entry {
		return &Entry{
			Item:   Item{Cluster: "runtime", Kind: kind, Namespace: "garden", Name: name, Origin: sort},
			object: storedObject{Labels: map[string]string{"name": name}, Created: created, Data: map[string][]byte{"a": []byte(hiddenValue)}},
		}
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &Archive{
		Manifest: Manifest{Format: Format, Version: Version, ID: "b", Created: at, Landscape: Landscape{Name: "l"}, Garden: Garden{Name: "g", UID: "u"}, Clusters: []Cluster{{Name: "runtime", UID: "c"}}},
		Entries:  []*Entry{entry(kindSecret, "one", OriginGenerated, at), entry(kindConfigMap, "two", OriginRecorded, at.Add(time.Second))},
	}
}

func newIdentity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	require.NoError(t, err)
	return id
}

func TestFile(t *testing.T) {
	id, other := newIdentity(t), newIdentity(t)
	path := filepath.Join(t.TempDir(), "x.backup")
	require.NoError(t, os.WriteFile(path, []byte("an older one"), 0o644))
	a := sampleArchive()
	require.NoError(t, WriteFile(path, a, other.Recipient(), id.Recipient()))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), hiddenValue)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	names, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, names, 1, "nothing else is left")

	got, err := ReadFile(path, id)
	require.NoError(t, err)
	assert.Equal(t, a.Manifest, got.Manifest)
	require.Len(t, got.Entries, 2)
	assert.Equal(t, hiddenValue, string(got.Entries[0].object.Data["a"]))
	assert.Equal(t, a.Entries[1].object, got.Entries[1].object)

	_, err = ReadFile(path, newIdentity(t))
	require.ErrorContains(t, err, path+": no key opens it")
	_, err = ReadFile(path)
	require.ErrorContains(t, err, "no key opens it")
	_, err = ReadFile(path+"x", id)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Error(t, WriteFile(filepath.Join(path, "no-folder"), a, id.Recipient()))
	require.ErrorContains(t, WriteFile(path, a), "needs a recipient")
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, raw, again, "what could not be written leaves the file of before")

	var text bytes.Buffer
	w := armor.NewWriter(&text)
	_, err = w.Write(raw)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	got, err = Open(&text, id)
	require.NoError(t, err)
	assert.Len(t, got.Entries, 2)
}

// TestDamagedFile: any changed or missing byte of a file is found before a restore.
func TestDamagedFile(t *testing.T) {
	id := newIdentity(t)
	var file bytes.Buffer
	require.NoError(t, Seal(&file, sampleArchive(), id.Recipient()))
	raw := file.Bytes()
	for i := 0; i < len(raw); i += 7 {
		spoilt := bytes.Clone(raw)
		spoilt[i] ^= 1
		_, err := Open(bytes.NewReader(spoilt), id)
		require.Error(t, err, "byte %d", i)
		assert.NotContains(t, err.Error(), hiddenValue)
		_, err = Open(bytes.NewReader(raw[:i]), id)
		require.Error(t, err, "only %d bytes", i)
	}
	_, err := Open(bytes.NewReader(append(bytes.Clone(raw), 0)), id)
	require.ErrorAs(t, err, new(*DamagedError))
	for _, text := range []string{"", "apiVersion: v1\n", "age", "\x1f\x8b\x08", "AGE-SECRET-KEY-1X", "-----BEGIN CERTIFICATE-----\n", `{"sops": {}}`} {
		for _, keys := range [][]age.Identity{{id}, nil} {
			_, err = Open(strings.NewReader(text), keys...)
			require.ErrorIs(t, err, ErrNoBackup, text)
		}
	}
	_, err = Open(strings.NewReader(ageHeader+"v9\n"), id)
	require.ErrorAs(t, err, new(*DamagedError))
}

// TestArchiveContents: the content is checked, too, because anyone can encrypt for the recipient.
func TestArchiveContents(t *testing.T) {
	id := newIdentity(t)
	type file struct{ name, text string }
	seal := func(files ...file) io.Reader {
		var out bytes.Buffer
		sealed, err := age.Encrypt(&out, id.Recipient())
		require.NoError(t, err)
		packed := gzip.NewWriter(sealed)
		w := tar.NewWriter(packed)
		for _, f := range files {
			require.NoError(t, w.WriteHeader(&tar.Header{Name: f.name, Size: int64(len(f.text)), Mode: 0o600}))
			_, err := w.Write([]byte(f.text))
			require.NoError(t, err)
		}
		for _, c := range []io.Closer{w, packed, sealed} {
			require.NoError(t, c.Close())
		}
		return &out
	}
	manifest := func(version int, items ...Item) file {
		raw, err := json.Marshal(Manifest{Format: Format, Version: version, Entries: items})
		require.NoError(t, err)
		return file{manifestName, string(raw)}
	}
	item := Item{Cluster: "runtime", Kind: kindSecret, Namespace: "garden", Name: "x", SHA256: checksum([]byte("{}"))}
	for name, test := range map[string]struct {
		files []file
		want  string
	}{
		"as it should be": {[]file{manifest(1, item), {item.path(), "{}"}}, ""},
		"nothing":         {nil, "manifest.json is missing"},
		"another format":  {[]file{{manifestName, `{"format": "tar"}`}}, `has format "tar"`},
		"a later version": {[]file{manifest(2)}, "it has format version 2, but this program supports version 1"},
		"no JSON":         {[]file{{manifestName, "x"}}, "manifest.json: "},
		"an entry less":   {[]file{manifest(1, item)}, item.path() + " is missing"},
		"another entry":   {[]file{manifest(1, item), {"y", "{}"}}, "it contains y instead of " + item.path()},
		"other content":   {[]file{manifest(1, item), {item.path(), "{ }"}}, "differs from its checksum in manifest.json"},
		"an entry more":   {[]file{manifest(1, item), {item.path(), "{}"}, {"more", ""}}, "it contains more, which manifest.json does not list"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(seal(test.files...), id)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestEntriesDoNotPrint: no verb prints values.
func TestEntriesDoNotPrint(t *testing.T) {
	for _, e := range sampleArchive().Entries {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			text := fmt.Sprintf(verb, e)
			assert.NotContains(t, text, hiddenValue)
			assert.Contains(t, text, "on cluster runtime")
		}
	}
	raw, err := json.Marshal(sampleArchive().Entries[0])
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "Data")
}

func TestChecksumsAreSalted(t *testing.T) {
	one, two := sampleArchive().Entries[0], sampleArchive().Entries[0]
	_, err := one.encode()
	require.NoError(t, err)
	_, err = two.encode()
	require.NoError(t, err)
	assert.NotEqual(t, one.Item.SHA256, two.Item.SHA256, "the same values have other checksums in another backup")
}

func TestRecipients(t *testing.T) {
	a, b := newIdentity(t).Recipient().String(), newIdentity(t).Recipient().String()
	found, err := ParseRecipients("# who\n" + a + "," + b + "\n\n " + a + "\n")
	require.NoError(t, err)
	assert.Len(t, found, 3)
	_, err = ParseRecipients("age1nobody")
	require.ErrorContains(t, err, `"age1nobody" is not a public age key`)
	key := newIdentity(t).String()
	_, err = ParseRecipients(key)
	require.ErrorContains(t, err, "this is a private age key")
	assert.NotContains(t, err.Error(), key)

	for name, test := range map[string]struct {
		file string
		want int
		err  string
	}{
		"a text":     {"creation_rules:\n- age: " + a + "\n", 1, ""},
		"several":    {"creation_rules:\n- age: \"" + a + ", " + b + "\"\n- age: [" + a + "]\n", 2, ""},
		"key groups": {"creation_rules:\n- key_groups:\n  - age: [" + a + "]\n  - age: [" + b + "]\n", 2, ""},
		"none":       {"creation_rules:\n- pgp: x\n", 0, "has no age recipients: name the recipients"},
		"cut":        {"creation_rules:\n- age: age1xyz\n", 0, `"age1xyz" is not a public age key: it begins like one, but is too short or misspelt`},
		"wrong":      {"creation_rules:\n- age: x\n", 0, `"x" is not a public age key`},
		"no YAML":    {"[", 0, landscapes.SopsFile},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, landscapes.SopsFile), []byte(test.file), 0o600))
			inner := filepath.Join(dir, "a", "b")
			require.NoError(t, os.MkdirAll(inner, 0o755))
			found, err := SopsRecipients(inner)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Len(t, found, test.want)
			require.NoError(t, os.Mkdir(filepath.Join(inner, ".git"), 0o755))
			_, err = SopsRecipients(inner)
			require.ErrorContains(t, err, "the landscape has no .sops.yaml", "what is outside of the repository does not count")
		})
	}
}

// TestCreationPasses: Secrets generated for the same request are restored one after the other.
func TestCreationPasses(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := func(namespace, request, name string, minute int) Step {
		e := &Entry{Item: Item{Origin: OriginGenerated}, object: storedObject{Labels: map[string]string{"name": request}, Created: at.Add(time.Duration(minute) * time.Minute)}}
		return Step{Namespace: namespace, Name: name, entry: e}
	}
	var got []string
	for _, age := range creationPasses([]Step{step("garden", "ca", "ca-3", 5), step("garden", "ca", "ca-1", 1), step("x", "ca", "other", 9), step("garden", "key", "key-1", 7), step("garden", "ca", "ca-2", 2)}) {
		var names []string
		for _, s := range age {
			names = append(names, s.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	assert.Equal(t, []string{"ca-1 key-1 other", "ca-2", "ca-3"}, got)
}
