package config

import (
	"fmt"
	"strings"
)

// Error is one thing that is wrong with the settings. Its text names the place, the key and the reason, and never a
// credential.
type Error struct {
	// Source is the place: "relay.toml:12", "MOQ_LISTEN", "--listen". Empty where a setting is missing.
	Source string
	Key    string // such as "listen.bind"; empty where no key is at fault
	Reason string
}

func (e *Error) Error() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{e.Source, e.Key, e.Reason} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Errors are all things that are wrong, in the order of the places; never empty.
type Errors []*Error

func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives access to the single errors.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// add appends an error unless reason is empty.
func (es *Errors) add(source, key, format string, args ...any) {
	*es = append(*es, &Error{Source: source, Key: key, Reason: fmt.Sprintf(format, args...)})
}
