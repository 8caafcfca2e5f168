package printable

import (
	"bytes"
	"encoding/json"
)

// JSON encodes as encoding/json does, but leaves <, > and & as they are: nothing of it stands in
// HTML. It is for methods MarshalJSON, whose escapes an Encoder without them does not take back.
func JSON(value any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
