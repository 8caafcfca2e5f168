// SPDX-License-Identifier: Apache-2.0

package printable

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type textMarshaler struct{ text string }

func (p textMarshaler) MarshalJSON() ([]byte, error) { return JSON(map[string]string{"text": p.text}) }

func TestJSONWithoutHTML(t *testing.T) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	require.NoError(t, enc.Encode(textMarshaler{"a < b && c > d"}))
	assert.Equal(t, `{"text":"a < b && c > d"}`+"\n", out.String())
	_, err := JSON(make(chan int))
	require.Error(t, err)
}
