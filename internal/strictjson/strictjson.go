// Package strictjson reads JSON objects that decide about access, where what two readers understand must be the same:
// names count as they are written, none may occur twice, and nothing may follow the object.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Errors of Object.
var (
	ErrSyntax    = errors.New("not a JSON object")
	ErrDuplicate = errors.New("duplicate name")
)

// Object splits one JSON object into its members, which are not looked into. The errors quote no values.
func Object(data []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, ErrSyntax
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, ErrSyntax
	}
	out := make(map[string]json.RawMessage)
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, ErrSyntax
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%w: %.64q", ErrDuplicate, name)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, ErrSyntax
		}
		out[name] = raw
	}
	if _, err := dec.Token(); err != nil {
		return nil, ErrSyntax
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrSyntax
	}
	return out, nil
}

// IsNull reports whether a member is null.
func IsNull(raw json.RawMessage) bool { return string(raw) == "null" }

// String reads a member that must be text. It reports false for anything else, null included.
func String(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// Strings reads a member that must be an array of texts.
func Strings(raw json.RawMessage) ([]string, bool) {
	var items []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return nil, false
	}
	out := make([]string, len(items))
	for i, item := range items {
		var ok bool
		if out[i], ok = String(item); !ok {
			return nil, false
		}
	}
	return out, true
}

// Number reads a member that must be a number.
func Number(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	var f float64
	err := json.Unmarshal(raw, &f)
	return f, err == nil // a number beyond float64 is an error
}

// Bool reads a member that must be true or false.
func Bool(raw json.RawMessage) (value, ok bool) {
	return string(raw) == "true", string(raw) == "true" || string(raw) == "false"
}
