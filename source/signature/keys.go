// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"
)

// Keys are trusted public keys.
type Keys struct {
	openPGP openpgp.EntityList
	sshKeys []sshKey
}

// ReadKeys reads files of public keys: OpenPGP keys in armour, SSH keys in the format of
// authorized_keys or allowed_signers.
func ReadKeys(files map[string][]byte) (*Keys, error) {
	out := &Keys{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data := files[name]
		if bytes.Contains(data, []byte("PRIVATE KEY")) {
			return nil, fmt.Errorf("%s holds a private key: only public keys belong here, and this one should be replaced", name)
		}
		var err error
		if bytes.Contains(data, []byte("-----BEGIN PGP PUBLIC KEY BLOCK-----")) {
			err = out.readOpenPGP(data)
		} else {
			err = out.readSSH(data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(out.openPGP) == 0 && len(out.sshKeys) == 0 {
		return nil, errors.New("it has no public key: nothing could be verified")
	}
	return out, nil
}

// Fingerprints returns the sorted fingerprints of the keys.
func (k *Keys) Fingerprints() []string {
	var out []string
	for _, entity := range k.openPGP {
		out = append(out, fmt.Sprintf("%X", entity.PrimaryKey.Fingerprint))
	}
	for _, key := range k.sshKeys {
		out = append(out, ssh.FingerprintSHA256(key.key))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// VerifyCommit verifies a commit in Git's storage format, and returns the signer.
func (k *Keys) VerifyCommit(raw []byte, now time.Time) (string, error) {
	payload, sign, err := commitPayload(raw)
	if err != nil {
		return "", err
	}
	return k.verify(payload, sign, now)
}

// VerifyTag verifies an annotated tag in Git's storage format, and returns the signer. The tag must
// have that name and commit: an older tag under another name is rejected.
func (k *Keys) VerifyTag(raw []byte, name, commit string, now time.Time) (string, error) {
	payload, sign, err := tagPayload(raw, name, commit)
	if err != nil {
		return "", err
	}
	return k.verify(payload, sign, now)
}

func (k *Keys) verify(payload, sign []byte, now time.Time) (string, error) {
	switch text := string(sign); {
	case strings.HasPrefix(text, openPGPStart):
		return k.verifyOpenPGP(payload, sign, now)
	case strings.HasPrefix(text, sshStart):
		return k.verifySSH(payload, sign, now)
	default:
		return "", errors.New("its signature is neither from OpenPGP nor from SSH")
	}
}
