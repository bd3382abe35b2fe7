package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// mutation is one kept way to break a rule.
type mutation struct {
	number   int      // in the list, from 1
	rules    []string // that it breaks
	what     string   // the rule does not hold then, in words
	file     string   // relative to the module
	places   []place  // where a test must notice
	old, new string   // texts; old occurs once in the file
}

// place is a package, relative to the module, and the tests of it that count; none named = all.
type place struct{ pkg, tests string }

func (m mutation) label() string { return strings.Join(m.rules, ",") }

var rulePattern = regexp.MustCompile(`^([RFH][1-9][0-9]*[a-z]?|[0-9]\.[0-9])$`)

// parse reads the list, see the head of mutations.txt.
func parse(text string) ([]mutation, error) {
	var all []mutation
	var block []string
	line, first := 0, 0
	end := func() error {
		if len(block) == 0 {
			return nil
		}
		m, err := parseBlock(block)
		if err != nil {
			return fmt.Errorf("mutations.txt:%d: %w", first, err)
		}
		m.number = len(all) + 1
		all, block = append(all, m), nil
		return nil
	}
	for l := range strings.Lines(text) {
		line++
		l = strings.TrimSuffix(l, "\n")
		switch {
		case strings.TrimSpace(l) == "":
			if err := end(); err != nil {
				return nil, err
			}
		case strings.HasPrefix(l, "#"):
		default:
			if len(block) == 0 {
				first = line
			}
			block = append(block, l)
		}
	}
	err := end()
	return all, err
}

func parseBlock(lines []string) (mutation, error) {
	var m mutation
	rules, what, ok := strings.Cut(lines[0], ": ")
	if m.rules, m.what = strings.Fields(rules), what; !ok || len(m.rules) == 0 || what == "" {
		return m, fmt.Errorf("%q is not a rule, a colon and what is broken", lines[0])
	}
	for _, r := range m.rules {
		if !rulePattern.MatchString(r) {
			return m, fmt.Errorf("%q is no rule", r)
		}
	}
	if len(lines) < 3 {
		return m, fmt.Errorf("no file, or no text to replace")
	}
	file, tests, apart := strings.Cut(strings.TrimSpace(lines[1]), " in ")
	m.file, m.places = file, []place{{pkg: path.Dir(file)}}
	if apart {
		m.places = nil
		for text := range strings.FieldsSeq(tests) {
			pkg, names, _ := strings.Cut(text, ":")
			m.places = append(m.places, place{pkg, names})
		}
	}
	if path.Ext(m.file) != ".go" || strings.ContainsAny(m.file, " \\") || len(m.places) == 0 {
		return m, fmt.Errorf("%q is not a Go file, and the packages that test it", lines[1])
	}
	var was, is []string
	for _, l := range lines[2:] {
		switch {
		case l[0] == '-' && len(is) == 0:
			was = append(was, l[1:])
		case l[0] == '+':
			is = append(is, l[1:])
		default:
			return m, fmt.Errorf("%q: lines of - come first, then lines of +", l)
		}
	}
	m.old, m.new = strings.Join(was, "\n"), strings.Join(is, "\n")
	if strings.TrimSpace(m.old) == "" || slices.Equal(was, is) {
		return m, fmt.Errorf("nothing is replaced")
	}
	return m, nil
}

// apply returns the text of the file with the mutation in it.
func (m mutation) apply(source string) (string, error) {
	if n := strings.Count(source, m.old); n != 1 {
		return "", fmt.Errorf("the text to replace occurs %d times in %s, not once", n, m.file)
	}
	return strings.Replace(source, m.old, m.new, 1), nil
}
