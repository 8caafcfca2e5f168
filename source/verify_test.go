// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"crypto"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	testclock "k8s.io/utils/clock/testing"

	landscapev1alpha1 "github.com/pergola-dev/pergola/api/landscape/v1alpha1"
	"github.com/pergola-dev/pergola/source/gittest"
)

func pgpKey(t *testing.T, name string, lifetime uint32) *openpgp.Entity {
	t.Helper()
	entity, err := openpgp.NewEntity(name, "", strings.ToLower(name)+"@example.com", &packet.Config{KeyLifetimeSecs: lifetime, Algorithm: packet.PubKeyAlgoEdDSA,
		Time: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }})
	require.NoError(t, err)
	return entity
}

func armored(t *testing.T, entity *openpgp.Entity) []byte {
	t.Helper()
	var out bytes.Buffer
	writer, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	require.NoError(t, err)
	require.NoError(t, entity.Serialize(writer))
	require.NoError(t, writer.Close())
	return out.Bytes()
}

// pgpSign signs the payload that Git passes to gpg.
func pgpSign(t *testing.T, entity *openpgp.Entity, payload string, hash crypto.Hash) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, openpgp.ArmoredDetachSign(&out, entity, strings.NewReader(payload), &packet.Config{DefaultHash: hash, Time: func() time.Time { return time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) }}))
	return out.String() + "\n"
}

// weakSign returns a signature that claims to use SHA-1. openpgp refuses to create one.
func weakSign(t *testing.T, entity *openpgp.Entity, payload string) string {
	t.Helper()
	block, err := armor.Decode(strings.NewReader(pgpSign(t, entity, payload, crypto.SHA256)))
	require.NoError(t, err)
	body, err := io.ReadAll(block.Body)
	require.NoError(t, err)
	// Two bytes of header; version, type and algorithm of the key; then the hash: 8 is SHA-256, 2
	// is SHA-1.
	require.Equal(t, byte(8), body[5])
	body[5] = 2
	var out bytes.Buffer
	writer, err := armor.Encode(&out, openpgp.SignatureType, nil)
	require.NoError(t, err)
	_, err = writer.Write(body)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	return out.String() + "\n"
}

// signCommit rewrites the last commit with a signature, and pushes it to a branch.
func signCommit(t *testing.T, repo *gittest.Repository, branch string, sign func(payload string) string) string {
	t.Helper()
	payload := repo.Git("cat-file", "commit", "HEAD") + "\n"
	header, body, _ := strings.Cut(payload, "\n\n")
	signature := strings.ReplaceAll(strings.TrimRight(sign(payload), "\n"), "\n", "\n ")
	return writeGitObject(t, repo, "commit", header+"\ngpgsig "+signature+"\n\n"+body, "refs/heads/"+branch)
}

func writeGitObject(t *testing.T, repo *gittest.Repository, kind, content, ref string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "object")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	hash := repo.Git("hash-object", "-t", kind, "-w", "--literally", file)
	repo.Git("push", "--quiet", "--force", "origin", hash+":"+ref)
	return hash
}

// sshSign signs in a namespace with ssh-keygen.
func sshSign(t *testing.T, identity []byte, payload, namespace string) string {
	t.Helper()
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "payload")
	require.NoError(t, os.WriteFile(key, identity, 0o600))
	require.NoError(t, os.WriteFile(file, []byte(payload), 0o600))
	out, err := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", key, file).CombinedOutput()
	require.NoError(t, err, string(out))
	data, err := os.ReadFile(file + ".sig")
	require.NoError(t, err)
	return string(data)
}

func TestSignaturesOfCommits(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	repo.PushFile("a.yaml", "1", "one")
	ada, mallory, brief := pgpKey(t, "Ada", 0), pgpKey(t, "Mallory", 0), pgpKey(t, "Brief", 3600*48)
	stolen := pgpKey(t, "Stolen", 0)
	var private bytes.Buffer
	require.NoError(t, stolen.SerializePrivate(&private, nil))
	revoked, err := openpgp.ReadEntity(packet.NewReader(&private))
	require.NoError(t, err)
	require.NoError(t, revoked.RevokeKey(packet.KeyCompromised, "stolen", &packet.Config{Time: func() time.Time { return time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC) }}))
	signer, identity := gittest.NewKey(t)
	stranger, strange := gittest.NewKey(t)
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	fingerprint := ssh.FingerprintSHA256(signer.PublicKey())
	by := func(entity *openpgp.Entity) func(string) string {
		return func(payload string) string { return pgpSign(t, entity, payload, crypto.SHA256) }
	}
	keys := map[string][]byte{"ada.asc": armored(t, ada), "brief.asc": armored(t, brief), "revoked.asc": armored(t, revoked), "signers": []byte("# people\n" + line + " ada@laptop\n")}
	for name, c := range map[string]struct {
		sign   func(string) string
		keys   map[string][]byte
		signer string
		err    string
	}{
		"openpgp":              {sign: by(ada), signer: fmt.Sprintf("%016X Ada <ada@example.com>", ada.PrimaryKey.KeyId)},
		"openpgp not trusted":  {sign: by(mallory), err: "which is not trusted"},
		"openpgp expired":      {sign: by(brief), err: "has expired"},
		"openpgp revoked":      {sign: by(stolen), err: "was revoked"},
		"openpgp weak hash":    {sign: func(p string) string { return weakSign(t, ada, p) }, err: "weak hash"},
		"openpgp of something": {sign: func(p string) string { return pgpSign(t, ada, p+"x", crypto.SHA256) }, err: "is not valid"},
		"openpgp two": {sign: func(p string) string {
			return pgpSign(t, ada, p, crypto.SHA256) + pgpSign(t, mallory, p, crypto.SHA256)
		}, signer: fmt.Sprintf("%016X Ada <ada@example.com>", ada.PrimaryKey.KeyId)},
		"no signature":        {sign: func(string) string { return "hello" }, err: "neither from OpenPGP nor from SSH"},
		"ssh":                 {sign: func(p string) string { return sshSign(t, identity, p, "git") }, signer: fingerprint + " ada@laptop"},
		"ssh not trusted":     {sign: func(p string) string { return sshSign(t, strange, p, "git") }, err: ssh.FingerprintSHA256(stranger.PublicKey()) + ", which is not trusted"},
		"ssh for files":       {sign: func(p string) string { return sshSign(t, identity, p, "file") }, err: `is for "file"`},
		"ssh of something":    {sign: func(p string) string { return sshSign(t, identity, p+"x", "git") }, err: "the signed content was changed"},
		"ssh principal":       {sign: func(p string) string { return sshSign(t, identity, p, "git") }, keys: map[string][]byte{"a": []byte(`ada@example.com namespaces="git" ` + line)}, signer: fingerprint + " ada@example.com"},
		"ssh other namespace": {sign: func(p string) string { return sshSign(t, identity, p, "git") }, keys: map[string][]byte{"a": []byte(`ada@example.com namespaces="file" ` + line)}, err: "not trusted for Git"},
		"ssh no longer":       {sign: func(p string) string { return sshSign(t, identity, p, "git") }, keys: map[string][]byte{"a": []byte(`ada@example.com valid-before="20260501" ` + line)}, err: "was valid only until"},
		"ssh not yet":         {sign: func(p string) string { return sshSign(t, identity, p, "git") }, keys: map[string][]byte{"a": []byte(`ada@example.com valid-after="20270501Z" ` + line)}, err: "is valid only from"},
	} {
		t.Run(name, func(t *testing.T) {
			commit := signCommit(t, repo, "signed", c.sign)
			trusted := c.keys
			if trusted == nil {
				trusted = keys
			}
			options := Options{URL: "file://" + repo.Bare, Ref: landscapev1alpha1.Reference{Branch: "signed"}, Verify: &Verification{Keys: trusted},
				Clock: testclock.NewFakePassiveClock(time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC))}
			r := newTestRemote(t, options)
			head, err := r.Resolve(t.Context())
			require.NoError(t, err)
			s, err := r.Fetch(t.Context(), head)
			if c.err == "" {
				require.NoError(t, err)
				assert.Equal(t, c.signer, s.Signer)
				return
			}
			requireReason(t, ReasonVerificationFailed, err)
			require.ErrorContains(t, err, c.err)
			require.ErrorContains(t, err, "commit "+commit)
			_, err = r.At(t.Context(), commit)
			requireReason(t, ReasonVerificationFailed, err)
		})
	}
	unsigned := newTestRemote(t, Options{URL: "file://" + repo.Bare, Verify: &Verification{Keys: keys}})
	head, err := unsigned.Resolve(t.Context())
	require.NoError(t, err)
	_, err = unsigned.Fetch(t.Context(), head)
	requireReason(t, ReasonVerificationFailed, err)
	require.ErrorContains(t, err, "it is not signed")
	require.ErrorContains(t, err, fingerprint)
	require.ErrorContains(t, err, fmt.Sprintf("%X", ada.PrimaryKey.Fingerprint))
}

// TestChangedAfterSigning: a signature does not count for another tree, or for a duplicate header.
func TestChangedAfterSigning(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	repo.PushFile("a.yaml", "evil", "evil")
	evil := repo.Git("rev-parse", "HEAD^{tree}")
	repo.PushFile("a.yaml", "good", "good")
	ada := pgpKey(t, "Ada", 0)
	signCommit(t, repo, "signed", func(p string) string { return pgpSign(t, ada, p, crypto.SHA256) })
	repo.Git("fetch", "--quiet", "origin", "signed")
	signed := repo.Git("cat-file", "commit", "FETCH_HEAD") + "\n"
	tree := repo.Git("rev-parse", "FETCH_HEAD^{tree}")
	for name, change := range map[string]func(string) string{
		"another tree":   func(s string) string { return strings.Replace(s, tree, evil, 1) },
		"two trees":      func(s string) string { return strings.Replace(s, "tree "+tree, "tree "+tree+"\ntree "+evil, 1) },
		"another text":   func(s string) string { return strings.Replace(s, "good", "evil", 1) },
		"two signatures": func(s string) string { return strings.Replace(s, "\n\n", "\ngpgsig x\n\n", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			writeGitObject(t, repo, "commit", change(signed), "refs/heads/signed")
			r := newTestRemote(t, Options{URL: "file://" + repo.Bare, Ref: landscapev1alpha1.Reference{Branch: "signed"}, Verify: &Verification{Keys: map[string][]byte{"a": armored(t, ada)}}})
			head, err := r.Resolve(t.Context())
			require.NoError(t, err)
			_, err = r.Fetch(t.Context(), head)
			require.Error(t, err)
		})
	}
}

func TestSignaturesOfTags(t *testing.T) {
	root := t.TempDir()
	repo := gittest.New(t, root, "landscape")
	commit := repo.PushFile("a.yaml", "1", "one")
	ada := pgpKey(t, "Ada", 0)
	_, identity := gittest.NewKey(t)
	signedTag := func(ref, name string, sign func(string) string) {
		payload := fmt.Sprintf("object %s\ntype commit\ntag %s\ntagger Ada <ada@example.com> 1767322000 +0000\n\nversion\n", commit, name)
		writeGitObject(t, repo, "tag", payload+sign(payload), "refs/tags/"+ref)
	}
	by := func(p string) string { return pgpSign(t, ada, p, crypto.SHA256) }
	signedTag("v1.0.0", "v1.0.0", by)
	signedTag("v1.1.0", "v1.0.0", by)
	signedTag("v1.2.0", "v1.2.0", func(string) string { return "" })
	signedTag("v1.3.0", "v1.3.0", func(p string) string { return sshSign(t, identity, p, "git") })
	repo.Git("push", "--quiet", "origin", commit+":refs/tags/v1.4.0")
	for tag, c := range map[string]struct {
		mode landscapev1alpha1.VerificationMode
		err  string
	}{
		"v1.0.0": {mode: landscapev1alpha1.VerifyTag},
		"v1.1.0": {mode: landscapev1alpha1.VerifyTag, err: `its tag is "v1.0.0", not "v1.1.0"`},
		"v1.2.0": {mode: landscapev1alpha1.VerifyTag, err: "it is not signed"},
		"v1.3.0": {mode: landscapev1alpha1.VerifyTag, err: "which is not trusted"},
		"v1.4.0": {mode: landscapev1alpha1.VerifyTag, err: "tag v1.4.0 of commit " + commit + ": it is not an annotated tag"},
	} {
		dir := filepath.Join(t.TempDir(), "cache")
		options := Options{URL: "file://" + repo.Bare, Dir: dir, Ref: landscapev1alpha1.Reference{Tag: tag}, Verify: &Verification{Mode: c.mode, Keys: map[string][]byte{"a": armored(t, ada)}}}
		r := newTestRemote(t, options)
		head, err := r.Resolve(t.Context())
		require.NoError(t, err)
		s, err := r.Fetch(t.Context(), head)
		if c.err != "" {
			requireReason(t, ReasonVerificationFailed, err)
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		assert.Contains(t, s.Signer, "Ada <ada@example.com>")
		require.NoError(t, r.Close())
		// After a restart the tag of the commit is still known.
		r = newTestRemote(t, options)
		s, err = r.At(t.Context(), commit)
		require.NoError(t, err)
		assert.Contains(t, s.Signer, "Ada <ada@example.com>")
	}
	both := newTestRemote(t, Options{URL: "file://" + repo.Bare, Ref: landscapev1alpha1.Reference{Tag: "v1.0.0"}, Verify: &Verification{Mode: landscapev1alpha1.VerifyTagAndHEAD, Keys: map[string][]byte{"a": armored(t, ada)}}})
	head, err := both.Resolve(t.Context())
	require.NoError(t, err)
	_, err = both.Fetch(t.Context(), head)
	requireReason(t, ReasonVerificationFailed, err)
	require.ErrorContains(t, err, "commit "+commit+": it is not signed")
}
