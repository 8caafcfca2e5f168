// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"encoding/json"
)

// JSON encodes like encoding/json, but does not escape <, > and &, because the result is not
// embedded in HTML. It is for MarshalJSON methods, whose escapes an Encoder does not undo.
func JSON(value any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
