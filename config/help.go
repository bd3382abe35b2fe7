package config

import (
	"fmt"
	"io"
	"strings"
)

// helpWidth is the length of lines in the help text.
const helpWidth = 100

// Usage writes the help text: every flag, by section.
func Usage(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Usage: moqmesh relay [FILE.toml] [flags]\n\n")
	b.WriteString(wrap("Settings come from flags, else from the environment, else from the file, else they have their defaults. "+
		"Lists are separated by commas, and their flags may be repeated.", ""))
	for _, s := range sections {
		title := s.name
		if title == "" {
			title = "general"
		}
		fmt.Fprintf(&b, "\n%s\n", wrap(strings.ToUpper(title)+": "+s.doc, ""))
		for _, k := range keys {
			if k.section() == s.name {
				k.help(&b)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (k *key) help(b *strings.Builder) {
	fmt.Fprintf(b, "  --%s", k.flag)
	if k.arg != "" {
		fmt.Fprintf(b, " %s", k.arg)
	}
	fmt.Fprintf(b, "  [%s]\n", k.env)
	doc := k.doc
	if k.def != "" {
		doc += " Default: " + plainDefault(k.def) + "."
	}
	b.WriteString(wrap(doc, "        "))
}

// plainDefault is a TOML value as one writes it on the command line.
func plainDefault(def string) string {
	if list, ok := strings.CutPrefix(def, "["); ok {
		def = strings.ReplaceAll(strings.TrimSuffix(list, "]"), ", ", ",")
	}
	return strings.ReplaceAll(def, `"`, "")
}

// wrap breaks text into lines with an indentation.
func wrap(text, indent string) string {
	var b strings.Builder
	width := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case width == 0:
			b.WriteString(indent)
			width = len(indent)
		case width+1+len(word) > helpWidth:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	b.WriteByte('\n')
	return b.String()
}
