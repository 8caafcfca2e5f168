// SPDX-License-Identifier: Apache-2.0

package secrets

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

const redactedText = "[redacted]"

// Value is one secret value in memory. It prints, logs and marshals as [redacted]; only Reveal
// returns it.
type Value struct{ bytes []byte }

// NewValue copies the bytes.
func NewValue(b []byte) Value { return Value{bytes: bytes.Clone(b)} }

// Reveal returns a copy of the value. The caller must not put it into logs, events, errors or
// renders.
func (v Value) Reveal() []byte { return bytes.Clone(v.bytes) }

// Len is the length in bytes.
func (v Value) Len() int { return len(v.bytes) }

// String implements fmt.Stringer.
func (Value) String() string { return redactedText }

// GoString implements fmt.GoStringer.
func (Value) GoString() string { return redactedText }

// Format implements fmt.Formatter, so that no verb prints the value.
func (Value) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redactedText) }

// MarshalText implements encoding.TextMarshaler, which JSON and YAML use.
func (Value) MarshalText() ([]byte, error) { return []byte(redactedText), nil }

// LogValue implements slog.LogValuer.
func (Value) LogValue() slog.Value { return slog.StringValue(redactedText) }

// redactedError replaces the text of an error that quotes a secret value. errors.Is and As still
// see the original.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string        { return e.text }
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *redactedError) As(target any) bool   { return errors.As(e.err, target) }

// minRedactedLength is the minimum length of values that redact searches for in error texts;
// shorter values match ordinary words.
const minRedactedLength = 8

// redact removes values from an error that a server or webhook may have quoted, plain or base64.
func redact(err error, data map[string]Value) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := text
	for key, v := range data {
		if isPublicDataKey(key) || v.Len() < minRedactedLength {
			continue
		}
		clean = strings.ReplaceAll(clean, string(v.bytes), redactedText)
		clean = strings.ReplaceAll(clean, base64.StdEncoding.EncodeToString(v.bytes), redactedText)
	}
	if clean == text {
		return err
	}
	return &redactedError{text: clean, err: err}
}

// isPublicDataKey reports whether a data key contains nothing secret.
func isPublicDataKey(key string) bool {
	switch key {
	case keyUsername, keyEncryptionProvider, keyEncryptionEncoding:
		return true
	}
	return false
}
