package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// ErrArray is the error of Array.
var ErrArray = errors.New("not a JSON array")

// Array splits one JSON array into its elements, which are not looked into. Nothing but blanks may follow it.
func Array(data []byte) ([]json.RawMessage, error) {
	if !utf8.Valid(data) {
		return nil, ErrArray
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return nil, ErrArray
	}
	out := []json.RawMessage{}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, ErrArray
		}
		out = append(out, raw)
	}
	if _, err := dec.Token(); err != nil {
		return nil, ErrArray
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrArray
	}
	return out, nil
}
