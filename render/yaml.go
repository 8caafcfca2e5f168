// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
)

// MarshalYAML writes an object with its keys in byte order. The "natural" order of usual encoders
// is not total for keys with digits, so the same object may have several encodings.
func MarshalYAML(object any) ([]byte, error) {
	if !isPlain(object) {
		raw, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		object = nil
		if err := decoder.Decode(&object); err != nil {
			return nil, err
		}
	}
	node, err := yamlNode(object)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := yamlv3.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(node); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

func yamlNode(v any) (*yamlv3.Node, error) {
	switch x := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		node := &yamlv3.Node{Kind: yamlv3.MappingNode, Tag: "!!map"}
		for _, k := range keys {
			value, err := yamlNode(x[k])
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, stringNode(k), value)
		}
		return node, nil
	case []any:
		node := &yamlv3.Node{Kind: yamlv3.SequenceNode, Tag: "!!seq"}
		for _, item := range x {
			value, err := yamlNode(item)
			if err != nil {
				return nil, err
			}
			node.Content = append(node.Content, value)
		}
		return node, nil
	case string:
		return stringNode(x), nil
	case bool:
		return &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(x)}, nil
	case int64:
		return &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(x, 10)}, nil
	case json.Number:
		tag := "!!float"
		if _, err := strconv.ParseInt(x.String(), 10, 64); err == nil {
			tag = "!!int"
		}
		return &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: tag, Value: x.String()}, nil
	case nil:
		return &yamlv3.Node{Kind: yamlv3.ScalarNode, Tag: "!!null", Value: "null"}, nil
	}
	return nil, fmt.Errorf("a %T has no YAML form", v)
}

// isPlain reports whether a value equals its decoded JSON. It has only types that the API machinery
// copies, and no fractions, which may be whole numbers.
func isPlain(v any) bool {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			if !utf8.ValidString(key) || !isPlain(value) {
				return false
			}
		}
		return x != nil
	case []any:
		return x != nil && !slices.ContainsFunc(x, func(item any) bool { return !isPlain(item) })
	case string:
		return utf8.ValidString(x)
	case nil, bool, int64:
		return true
	}
	return false
}

// ambiguous strings mean something else to a YAML 1.1 reader (yes, off, 1_000, 12:30) when they are
// not quoted.
var (
	ambiguousNumberPattern = regexp.MustCompile(`^[-+.0-9][-+.0-9_:eExXoOa-fA-F]*$`)
	ambiguousWordPattern   = regexp.MustCompile(`^(?:[yYnN]|[yY]es|YES|[nN]o|NO|[tT]rue|TRUE|[fF]alse|FALSE|[oO]n|ON|[oO]ff|OFF|[nN]ull|NULL|~|=|<<)$`)
)

// maxAmbiguousWordLength is the length of the longest match of ambiguousWordPattern.
const maxAmbiguousWordLength = len("false")

func stringNode(s string) *yamlv3.Node {
	node := &yamlv3.Node{}
	node.SetString(s)
	if ambiguousNumberPattern.MatchString(s) || len(s) <= maxAmbiguousWordLength && ambiguousWordPattern.MatchString(s) {
		node.Style = yamlv3.DoubleQuotedStyle
	}
	return node
}
