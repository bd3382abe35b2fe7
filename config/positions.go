package config

import (
	"fmt"
	"strconv"
	"strings"
)

// positions finds the lines of everything in a TOML document that has a name, for messages: the library decodes but
// does not say where a key was. Names are dotted paths; a part with a dot in it is quoted, elements of lists are
// "[0]", "[1]" and so on. The document must be valid TOML: of another one the result is incomplete.
func positions(doc string) map[string]int {
	s := &scanner{text: strings.TrimPrefix(doc, "\ufeff"), line: 1, found: make(map[string]int), arrays: make(map[string]int)}
	s.document()
	return s.found
}

// scanner walks over a document once, from left to right.
type scanner struct {
	text   string
	at     int
	line   int
	found  map[string]int
	arrays map[string]int // tables in each array of tables
}

func (s *scanner) document() {
	prefix := ""
	for s.blank(); s.at < len(s.text); s.blank() {
		start := s.at
		if s.peek() == '[' {
			prefix = s.header()
		} else {
			s.pair(prefix)
		}
		if s.at == start { // not TOML
			s.at++
		}
	}
}

// header reads "[a.b]" or "[[a.b]]" and returns the path of what follows.
func (s *scanner) header() string {
	double := strings.HasPrefix(s.text[s.at:], "[[")
	s.at++
	if double {
		s.at++
	}
	line, path := s.line, ""
	parts := s.key()
	for i, part := range parts {
		path = join(path, part)
		n, isArray := s.arrays[path]
		switch {
		case i == len(parts)-1 && double:
			s.arrays[path] = n + 1
			path = element(path, n)
		case isArray:
			path = element(path, n-1)
		}
		s.note(path, line)
	}
	for s.at < len(s.text) && s.peek() == ']' {
		s.at++
	}
	return path
}

// pair reads "key = value".
func (s *scanner) pair(prefix string) {
	line, path := s.line, prefix
	for _, part := range s.key() {
		path = join(path, part)
		s.note(path, line)
	}
	s.spaces()
	if s.peek() == '=' {
		s.at++
		s.spaces()
		s.value(path)
	}
}

// note records the first line of a path.
func (s *scanner) note(path string, line int) {
	if _, ok := s.found[path]; !ok && path != "" {
		s.found[path] = line
	}
}

// key reads a dotted key.
func (s *scanner) key() (parts []string) {
	for {
		s.spaces()
		start := s.at
		switch s.peek() {
		case '"', '\'':
			s.quoted()
			part := s.text[start:s.at]
			if plain, err := strconv.Unquote(part); err == nil && part[0] == '"' {
				part = plain
			} else {
				part = strings.Trim(part, string(s.text[start]))
			}
			parts = append(parts, quotePart(part))
		default:
			s.until(" \t\r\n.=]}#,")
			parts = append(parts, s.text[start:s.at])
		}
		s.spaces()
		if s.peek() != '.' {
			return parts
		}
		s.at++
	}
}

// value reads a value and records what is named inside.
func (s *scanner) value(path string) {
	switch s.peek() {
	case '"', '\'':
		s.quoted()
	case '[':
		s.list(']', func(i int) {
			s.note(element(path, i), s.line)
			s.value(element(path, i))
		})
	case '{':
		s.list('}', func(int) { s.pair(path) })
	default:
		s.until(",]}#\r\n")
	}
}

// list reads what stands between an opening bracket and its end, separated by commas.
func (s *scanner) list(end byte, item func(i int)) {
	s.at++
	for i := 0; s.at < len(s.text); i++ {
		s.blank()
		if s.peek() == end {
			s.at++
			return
		}
		start := s.at
		item(i)
		s.blank()
		if s.peek() == ',' {
			s.at++
		} else if s.peek() != end && s.at == start {
			return // not TOML
		}
	}
}

// quoted reads a string of any of the four kinds.
func (s *scanner) quoted() {
	quote := s.text[s.at : s.at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s.text[s.at:], triple) {
		quote = triple
	}
	s.at += len(quote)
	for s.at < len(s.text) {
		switch {
		case strings.HasPrefix(s.text[s.at:], quote):
			s.at += len(quote)
			for len(quote) == 3 && s.peek() == quote[0] { // quotes before the closing ones
				s.at++
			}
			return
		case s.text[s.at] == '\\' && quote[0] == '"' && s.at+1 < len(s.text) && s.text[s.at+1] != '\n':
			s.at += 2
		default:
			s.advance()
		}
	}
}

// blank skips spaces, line ends and comments.
func (s *scanner) blank() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '#':
			s.until("\n")
		case ' ', '\t', '\r', '\n':
			s.advance()
		default:
			return
		}
	}
}

func (s *scanner) spaces() {
	for s.peek() == ' ' || s.peek() == '\t' {
		s.at++
	}
}

// until skips to the next of the stop characters.
func (s *scanner) until(stops string) {
	for s.at < len(s.text) && strings.IndexByte(stops, s.text[s.at]) < 0 {
		s.advance()
	}
}

// advance skips one byte and counts lines.
func (s *scanner) advance() {
	if s.text[s.at] == '\n' {
		s.line++
	}
	s.at++
}

// peek is the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// join appends a part to a dotted path.
func join(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}

// quotePart keeps a key with a dot in it apart from a path.
func quotePart(part string) string {
	if part == "" || strings.ContainsAny(part, ".[]\"") {
		return strconv.Quote(part)
	}
	return part
}

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
