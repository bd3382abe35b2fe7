package config

import (
	"slices"
	"strings"
)

var keysByFlag = index(func(k *key) string { return k.flag })

// arguments are a command line taken apart.
type arguments struct {
	file  string
	help  bool
	flags []flagValue
}

// flagValue is one flag as given.
type flagValue struct {
	name  string
	value string
	set   bool // a value was given
}

// parseArgs takes a command line apart: "--name=value", "--name value", "--switch", one file. "--" ends the flags.
func (l *loader) parseArgs(args []string) (out arguments) {
	var files []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "-h" || arg == "--help":
			out.help = true
			return out
		case arg == "--":
			files = append(files, args...)
			args = nil
		case strings.HasPrefix(arg, "--"):
			var f flagValue
			f.name, f.value, f.set = strings.Cut(arg[2:], "=")
			if !f.set && !isSwitch(f.name) && len(args) > 0 && !strings.HasPrefix(args[0], "--") {
				f.value, f.set = args[0], true
				args = args[1:]
			}
			out.flags = append(out.flags, f)
		case strings.HasPrefix(arg, "-") && arg != "-":
			l.errs.add(arg, "", "unknown flag; flags start with two dashes, -h lists them")
		default:
			files = append(files, arg)
		}
	}
	if len(files) > 1 {
		l.errs.add("", "", "more than one configuration file: %s", strings.Join(files, ", "))
	}
	if len(files) > 0 {
		out.file = files[0]
	}
	return out
}

// isSwitch reports whether a flag takes no value as the next argument.
func isSwitch(name string) bool {
	if k := keysByFlag[name]; k != nil {
		return k.boolean
	}
	o, _ := inFlags.find(slices.Concat(inert, unsupported), name)
	return o.boolean
}

// readFlags lays the flags over the draft. Flags of lists may be repeated.
func (l *loader) readFlags(flags []flagValue) {
	lists := make(map[*key]string)
	seen := make(map[string]bool)
	for _, f := range flags {
		source := "--" + f.name
		k := keysByFlag[f.name]
		switch {
		case k == nil:
			l.unknownFlag(f, source)
		case k.boolean && !f.set:
			f.value = "true"
			fallthrough
		case f.set:
			if seen[f.name] && !k.list {
				l.errs.add(source, k.name, "given more than once")
				continue
			}
			if seen[f.name] {
				f.value = lists[k] + "," + f.value
			}
			seen[f.name], lists[k] = true, f.value
			l.set(k, text(f.value), origin{source: source})
		default:
			l.errs.add(source, k.name, "a value is missing")
		}
	}
}

// unknownFlag handles a flag that is not one of ours.
func (l *loader) unknownFlag(f flagValue, source string) {
	raw := any(text(f.value))
	if !f.set {
		raw = true
	}
	if l.outside(inFlags, f.name, source, raw) {
		return
	}
	section, _, _ := strings.Cut(f.name, "-")
	var known []string
	for _, k := range keys {
		if below(k.flag, section, "-") {
			known = append(known, "--"+k.flag)
		}
	}
	hint := "-h lists the flags"
	if len(known) > 0 {
		hint = "known: " + strings.Join(known, ", ")
	}
	l.errs.add(source, "", "unknown flag; %s", hint)
}
