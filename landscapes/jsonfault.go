// SPDX-License-Identifier: Apache-2.0

package landscapes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// jsonFault describes an unexpected character. It returns the text before the fault, which is the
// comma if there is one too many.
func jsonFault(syntax *json.SyntaxError, data, before []byte) (message string, place []byte) {
	found, _ := utf8.DecodeRune(data[len(before):])
	shown := fmt.Sprintf("%q", string(found))
	trimmed := bytes.TrimRight(before, " \t\r\n")
	comma := bytes.HasSuffix(trimmed, []byte(","))
	said := syntax.Error()
	expected := func(what string) bool { return strings.Contains(said, what) }
	isValue, isName := expected("beginning of value"), expected("beginning of object key")
	closes := found == '}' || found == ']'
	switch {
	case (isValue || isName) && comma && closes:
		return fmt.Sprintf("there is a comma before the closing %s; remove the comma", shown), trimmed[:len(trimmed)-1]
	case (isValue || isName) && found == ',' && comma:
		return "two commas follow each other; remove one", before
	case found == '#', found == '/' && strings.ContainsAny(nextByte(data, len(before)), "/*"):
		return "comments are not allowed; remove the comment, or rename the file to .yaml and begin comments with #", before
	case (isValue || isName) && (found == '\'' || found == '\u201c' || found == '\u201d'):
		return fmt.Sprintf("text begins with %s; put it in double quotes (\")", shown), before
	case isName && found == ',':
		return "there is a comma before the first field; remove the comma", before
	case isName:
		return fmt.Sprintf("the name of a field is expected, in double quotes, and %s is found", shown), before
	case isValue && len(trimmed) > 0 && (closes || found == ',') && bytes.HasSuffix(trimmed, []byte(":")):
		return fmt.Sprintf("a field has no value: %s follows the colon; write a value, or null", shown), before
	case isValue && len(trimmed) > 0 && bytes.HasSuffix(trimmed, []byte("[")) && found == ',':
		return "there is a comma before the first item; remove the comma", before
	case isValue && closes:
		return fmt.Sprintf("the closing %s has no opening one", shown), before
	case isValue && (unicode.IsLetter(found) || found == '_'):
		return fmt.Sprintf("a value is expected and %s is found; put text in double quotes", shown), before
	case isValue && (found == '+' || found == '.'):
		return fmt.Sprintf("a number does not begin with %s; begin it with a digit or a minus sign", shown), before
	case isValue:
		return fmt.Sprintf("a value is expected and %s is found", shown), before
	case expected("after object key:value pair"):
		return fmt.Sprintf("a comma or a closing brace is expected and %s is found", shown), before
	case expected("after object key"):
		return fmt.Sprintf("a colon is expected after the name of a field and %s is found", shown), before
	case expected("after array element"):
		return fmt.Sprintf("a comma or a closing bracket is expected and %s is found", shown), before
	case expected("in string literal"):
		return "text has a line break or a control character in it; close its quotes, or write \\n for a line break", before
	case expected("escape"):
		return `text has a backslash before ` + shown + `; write \\ for a backslash, or \n, \t, \" or \uXXXX`, before
	case expected("numeric literal"):
		return fmt.Sprintf("a number is not complete: a digit is expected and %s is found", shown), before
	case expected("in literal"):
		return "a word is not true, false or null; put text in double quotes", before
	}
	return fmt.Sprintf("%s is not expected here", shown), before
}

// nextByte returns the byte after a place, empty at the end.
func nextByte(data []byte, at int) string {
	if at+1 >= len(data) {
		return ""
	}
	return string(data[at+1 : at+2])
}
