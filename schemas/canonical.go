// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// appendCanonical encodes equal content as equal bytes, and different content as different bytes.
func appendCanonical(to []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(to, 'n')
	case bool:
		if v {
			return append(to, 't')
		}
		return append(to, 'f')
	case int64:
		return binary.BigEndian.AppendUint64(append(to, 'i'), uint64(v))
	case int:
		return binary.BigEndian.AppendUint64(append(to, 'i'), uint64(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(to, 'd'), math.Float64bits(v))
	case string:
		return appendText(append(to, 's'), v)
	case []any:
		to = binary.AppendUvarint(append(to, 'l'), uint64(len(v)))
		for _, item := range v {
			to = appendCanonical(to, item)
		}
		return to
	case map[string]any:
		to = binary.AppendUvarint(append(to, 'm'), uint64(len(v)))
		names := make([]string, 0, 16)
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			to = appendCanonical(appendText(to, name), v[name])
		}
		return to
	}
	// Content of other types comes from callers who did not read it from a file.
	data, err := json.Marshal(value)
	if err != nil {
		data = fmt.Appendf(nil, "%T %#v", value, value)
	}
	return appendText(append(to, 'j'), string(data))
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}
