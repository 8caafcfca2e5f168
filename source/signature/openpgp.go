// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

func (k *Keys) readOpenPGP(data []byte) error {
	// One file may contain several blocks.
	for rest := bytes.NewReader(data); ; {
		block, err := armor.Decode(rest)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || block.Type != openpgp.PublicKeyType {
			return errors.New("it is not an armored OpenPGP public key")
		}
		ring, err := openpgp.ReadKeyRing(block.Body)
		if err != nil {
			return errors.New("it is not a readable OpenPGP public key")
		}
		k.openPGP = append(k.openPGP, ring...)
	}
}

func (k *Keys) verifyOpenPGP(payload, sign []byte, now time.Time) (string, error) {
	block, err := armor.Decode(bytes.NewReader(sign))
	if err != nil || block.Type != openpgp.SignatureType {
		return "", errors.New("its signature is not an armored OpenPGP signature")
	}
	body, err := io.ReadAll(io.LimitReader(block.Body, 64<<10))
	if err != nil {
		return "", errors.New("its signature is broken")
	}
	issuer, err := singleSignatureIssuer(body)
	if err != nil {
		return "", err
	}
	strong := []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512, crypto.SHA3_256, crypto.SHA3_512}
	found, signer, err := openpgp.VerifyDetachedSignatureAndHash(k.openPGP, bytes.NewReader(payload), bytes.NewReader(body), strong, &packet.Config{Time: func() time.Time { return now }})
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return "", fmt.Errorf("it is signed by the OpenPGP key %s, which is not trusted", issuer)
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return "", fmt.Errorf("it is signed by the OpenPGP key %s, which was revoked", issuer)
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return "", fmt.Errorf("it is signed by the OpenPGP key %s, which has expired: if its owner extended it, put the new public key into the Secret", issuer)
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return "", fmt.Errorf("its signature by the OpenPGP key %s has expired", issuer)
	case err != nil:
		return "", fmt.Errorf("its signature by the OpenPGP key %s is not valid: %w", issuer, err)
	case signer == nil || found == nil:
		return "", errors.New("its signature is not valid")
	}
	if key := signer.PrimaryKey; key.PubKeyAlgo == packet.PubKeyAlgoRSA || key.PubKeyAlgo == packet.PubKeyAlgoRSASignOnly {
		if bits, err := key.BitLength(); err != nil || bits < minRSABits {
			return "", fmt.Errorf("it is signed by the OpenPGP key %s, which is too weak: RSA needs %d bits", issuer, minRSABits)
		}
	}
	name := ""
	if identity := signer.PrimaryIdentity(); identity != nil {
		name = " " + identity.Name
	}
	return issuer + name, nil
}

// singleSignatureIssuer returns the id of the signing key. It rejects a second signature, because
// another one might be verified.
func singleSignatureIssuer(body []byte) (string, error) {
	reader := packet.NewReader(bytes.NewReader(body))
	issuer := ""
	for {
		next, err := reader.Next()
		if errors.Is(err, io.EOF) {
			if issuer == "" {
				return "", errors.New("its signature is empty")
			}
			return issuer, nil
		}
		if err != nil {
			return "", errors.New("its signature is broken")
		}
		signature, ok := next.(*packet.Signature)
		switch {
		case !ok || issuer != "":
			return "", errors.New("its signature is more than one signature")
		case signature.IssuerKeyId == nil:
			return "", errors.New("its signature does not say which key made it")
		case signature.Hash != crypto.SHA256 && signature.Hash != crypto.SHA384 && signature.Hash != crypto.SHA512 && signature.Hash != crypto.SHA3_256 && signature.Hash != crypto.SHA3_512:
			return "", fmt.Errorf("its signature is made over the weak hash %s: SHA-256 or better is needed", signature.Hash)
		}
		issuer = fmt.Sprintf("%016X", *signature.IssuerKeyId)
	}
}
