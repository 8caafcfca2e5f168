// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// splitJSON splits a JSON document into its values, because `jq` and other tools write several. It
// returns nil if the document is not JSON.
func (d document) splitJSON() []document {
	if first := bytes.TrimLeft(d.data, " \t\r\n"); len(first) == 0 || first[0] != '{' && first[0] != '[' {
		return nil
	}
	var values []document
	decoder := json.NewDecoder(bytes.NewReader(d.data))
	at := jsonReader{data: d.data, decoder: decoder, line: d.offset + 1, column: 1}
	for {
		at.advance()
		line, behind := at.line, at.column-1
		var value json.RawMessage
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF):
			return values
		case err != nil:
			return nil
		}
		end := int(decoder.InputOffset())
		values = append(values, document{data: d.data[end-len(value) : end : end], offset: line - 1, json: true, columnOffset: behind})
	}
}

// jsonReader makes the nodes of a JSON value. YAML reads "\/" and surrogate pairs of \u escapes
// differently.
type jsonReader struct {
	data    []byte
	decoder *json.Decoder
	// at, line and column are the place of the last token.
	at, line, column int
}

// parseJSON reads the nodes of a document that stream found.
func (d document) parseJSON() (*yaml.Node, error) {
	r := &jsonReader{data: d.data, decoder: json.NewDecoder(bytes.NewReader(d.data)), line: d.offset + 1, column: 1 + d.columnOffset}
	r.decoder.UseNumber()
	return r.node()
}

// advance moves to the next token.
func (r *jsonReader) advance() {
	to := int(r.decoder.InputOffset())
	for to < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[to]) >= 0 {
		to++
	}
	for r.at < to {
		c, size := utf8.DecodeRune(r.data[r.at:])
		r.at += size
		if r.column++; c == '\n' {
			r.line, r.column = r.line+1, 1
		}
	}
}

func (r *jsonReader) node() (*yaml.Node, error) {
	r.advance()
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line, Column: r.column}
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		node.Kind, node.Tag, node.Style = yaml.MappingNode, "!!map", yaml.FlowStyle
		if t == '[' {
			node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
		}
		for r.decoder.More() {
			child, err := r.node()
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, child)
		}
		_, err = r.decoder.Token()
	case json.Number:
		node.Value, node.Tag = t.String(), "!!int"
		if strings.ContainsAny(node.Value, ".eE") {
			node.Tag = "!!float"
		}
	case string:
		node.Value, node.Tag, node.Style = t, "!!str", yaml.DoubleQuotedStyle
	case bool:
		node.Value, node.Tag = "false", "!!bool"
		if t {
			node.Value = "true"
		}
	default:
		node.Value, node.Tag = "null", "!!null"
	}
	return node, err
}
