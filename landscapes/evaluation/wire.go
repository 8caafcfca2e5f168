// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// maxMessage is the largest message, in bytes.
const maxMessage = 256 << 20

// writeMessage sends a value: its length in four bytes, then JSON.
func writeMessage(w io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing a message: %w", err)
	}
	if len(data) > maxMessage {
		return fmt.Errorf("a message of %d bytes is too large", len(data))
	}
	if _, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)); err != nil {
		return fmt.Errorf("sending a message: %w", err)
	}
	return nil
}

// readMessage receives a value; io.EOF means that there is no further message.
func readMessage(r io.Reader, value any) error {
	var header [4]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(header[:])
	if length > maxMessage {
		return fmt.Errorf("a message of %d bytes is too large", length)
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(r, data); err != nil {
		return fmt.Errorf("receiving a message: %w", err)
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("reading a message: %w", err)
	}
	return nil
}
