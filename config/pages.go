package config

import (
	"fmt"
	"strings"
)

// Example is the example file: every setting that exists, with its default, or commented out with an example where it
// has none. A relay starts with it.
func Example() string {
	var b strings.Builder
	b.WriteString("# moqmesh: every setting. Those with a default show it, the others are commented out and show an example.\n" +
		"# docs/config.md has the flags and variables that go with them. Run: moqmesh relay config.example.toml\n\n")
	for _, k := range keys {
		if k.section() == "" {
			k.writeExample(&b)
		}
	}
	for _, s := range sections {
		if s.name == "" {
			continue
		}
		b.WriteByte('\n')
		b.WriteString(comment(s.doc))
		fmt.Fprintf(&b, "[%s]\n", s.name)
		for _, k := range keys {
			if k.section() == s.name {
				k.writeExample(&b)
			}
		}
	}
	return b.String()
}

func (k *key) writeExample(b *strings.Builder) {
	b.WriteString(comment(k.doc))
	switch {
	case k.def != "":
		fmt.Fprintf(b, "%s = %s\n", k.short(), k.def)
	case k.needed:
		fmt.Fprintf(b, "%s = %s\n", k.short(), k.example)
	default:
		fmt.Fprintf(b, "#%s = %s\n", k.short(), k.example)
	}
}

// comment makes comment lines of text.
func comment(text string) string {
	return wrap(text, "# ")
}

// Reference is the reference page of the settings, in Markdown.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, s := range sections {
		title := "[" + s.name + "]"
		if s.name == "" {
			title = "Without a section"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n", title, s.doc)
		for _, k := range keys {
			if k.section() == s.name {
				fmt.Fprintf(&b, "| `%s`<br>`--%s`<br>`%s` | %s | %s | %s |\n", k.short(), k.flag, k.env, k.kind, code(k.def), cell(k.doc))
			}
		}
	}
	b.WriteString("\n## Accepted without effect\n\nThese are known from other relays. Setting one logs a warning.\n\n| Key | Why |\n|---|---|\n")
	for _, o := range inert {
		fmt.Fprintf(&b, "| `%s` | %s |\n", o.name, cell(o.why))
	}
	b.WriteString("\n## Refused\n\nThese are known from other relays and would change what the relay does, so it does not start with one of them. The value in the\nlast column is accepted, since it asks for what happens anyway.\n\n| Key | | Accepted |\n|---|---|---|\n")
	for _, o := range unsupported {
		name := o.name
		if strings.HasSuffix(name, ".") {
			name += "*"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, o.why, code(o.off))
	}
	b.WriteString("\n## Older names\n\nThe relay refuses these too and says what became of them.\n\n| Name | |\n|---|---|\n")
	for _, r := range renamed {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r.name, cell(r.hint))
	}
	return b.String()
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// cell makes text fit for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

const referenceHead = `# Configuration

This page and [config.example.toml](../config.example.toml) are made from the table of keys in ` + "`config/keys.go`" + `; a test holds them to it.

` + "`moqmesh relay FILE.toml`" + ` reads the file; flags and environment variables work with or without one. A flag counts before the
environment, the environment before the file, the file before the default. What is set counts, also when it is ` + "`false`" + ` or an empty list.

* Unknown keys and flags, wrong types and values end the program with status 1 and a message that names file, line and key.
* Durations are text with a unit: ` + "`300ms`, `10s`, `5m`, `1h 30m`" + `. Sizes are ` + "`512MB`, `8GiB`" + ` or a number of bytes.
* Lists are one text or an array of texts in the file, and separated by commas elsewhere. Flags of lists may be repeated.
* Switches are ` + "`--x`, `--x=true` or `--x=false`" + `.
* Everything is read at start; there is no reload by signal. Certificates and the token file are read again when they change.
* ` + "`moqmesh`" + ` without arguments is a relay for development: localhost:4443 on UDP and TCP, a generated certificate, everything public,
  internal endpoints on 127.0.0.1:4444. It reads neither file nor environment.
`
