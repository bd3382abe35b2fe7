package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// file is the layer of the configuration file.
type file struct {
	name  string
	lines map[string]int
	l     *loader
}

// readFile lays the settings of a file over the draft.
func (l *loader) readFile(name string, data []byte) {
	var tree map[string]any
	if _, err := toml.Decode(string(data), &tree); err != nil {
		l.errs = append(l.errs, syntaxError(name, err))
		return
	}
	f := &file{name: name, lines: positions(string(data)), l: l}
	f.walk("", tree)
}

// quotedValue is what messages of the TOML library quote of a value. Keys are quoted otherwise.
var quotedValue = regexp.MustCompile(`"[^"]{2,}"|'[^']{4,}'`)

// syntaxError makes an error of ours of one of the TOML library, without what it quotes from the file: that may be
// part of a credential.
func syntaxError(name string, err error) *Error {
	var bad toml.ParseError
	if !errors.As(err, &bad) {
		return &Error{Source: name, Reason: "not valid TOML"}
	}
	text := bad.Message
	if !strings.HasPrefix(text, "Key ") {
		text = quotedValue.ReplaceAllString(text, "…")
	}
	return &Error{
		Source: fmt.Sprintf("%s:%d", name, bad.Position.Line), Key: bad.LastKey,
		Reason: "not valid TOML: " + strings.TrimSuffix(text, "."),
	}
}

// readError is the error for a file that cannot be read.
func readError(name string, err error) *Error {
	return &Error{Source: name, Reason: "cannot be read: " + withoutPath(err).Error()}
}

// walk visits a table in the order of its lines.
func (f *file) walk(path string, table map[string]any) {
	names := slices.Sorted(maps.Keys(table))
	slices.SortStableFunc(names, func(a, b string) int {
		return f.lines[join(path, quotePart(a))] - f.lines[join(path, quotePart(b))]
	})
	for _, name := range names {
		f.visit(join(path, quotePart(name)), table[name])
	}
}

// visit handles one name: a setting, a section, or something that does not belong here.
func (f *file) visit(path string, raw any) {
	if k := keysByName[path]; k != nil {
		f.l.set(k, raw, origin{source: f.source(path), part: func(part string) (string, bool) {
			line, ok := f.lines[path+part]
			return fmt.Sprintf("%s:%d", f.name, line), ok
		}})
		return
	}
	table, isTable := raw.(map[string]any)
	if isTable && len(table) > 0 && knownSections[path] {
		f.walk(path, table)
		return
	}
	if f.l.outside(inFile, path, f.source(path), raw) {
		return
	}
	switch {
	case isTable && knownSections[path]: // empty
	case knownSections[path]:
		f.l.errs.add(f.source(path), path, "is a section, not a setting")
	default:
		f.l.errs.add(f.source(path), path, "%s", unknown(path, isTable))
	}
}

func (f *file) source(path string) string {
	if line, ok := f.lines[path]; ok {
		return fmt.Sprintf("%s:%d", f.name, line)
	}
	return f.name
}

// keysByName are the settings; knownSections are the tables that hold settings of any kind, old ones included, at any
// depth.
var (
	keysByName    = index(func(k *key) string { return k.name })
	knownSections = findSections()
)

func index(by func(*key) string) map[string]*key {
	out := make(map[string]*key, len(keys))
	for _, k := range keys {
		out[by(k)] = k
	}
	return out
}

func findSections() map[string]bool {
	out := make(map[string]bool)
	add := func(name string) {
		for i := range len(name) {
			if name[i] == '.' {
				out[name[:i]] = true
			}
		}
	}
	for _, k := range keys {
		add(k.name)
	}
	for _, o := range slices.Concat(inert, unsupported) {
		add(o.name)
	}
	for _, r := range renamed {
		add(r.name)
	}
	return out
}

// unknown says that a name is unknown, what there is in its place, and where a setting of that name would belong.
func unknown(path string, isTable bool) string {
	section, last := "", path
	if at := strings.LastIndexByte(path, '.'); at >= 0 {
		section, last = path[:at], path[at+1:]
	}
	var known, elsewhere []string
	for _, k := range keys {
		if rest, ok := strings.CutPrefix(k.name, section+"."); ok && section != "" {
			known = append(known, rest)
		}
		if strings.HasSuffix(k.name, "."+last) || k.name == last {
			elsewhere = append(elsewhere, k.name)
		}
	}
	what := "unknown key"
	if isTable {
		what = "unknown section"
	}
	if section == "" {
		for _, s := range sections {
			if s.name != "" {
				known = append(known, "["+s.name+"]")
			}
		}
		known = append(known, "drain_timeout")
	}
	what += "; known here: " + strings.Join(known, ", ")
	if len(elsewhere) > 0 {
		what += "; there is " + strings.Join(elsewhere, " and ")
	}
	return what
}
