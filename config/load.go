package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/BurntSushi/toml"
	"github.com/moqmesh/moqmesh/cluster"
)

// ErrHelp says that -h or --help was given.
var ErrHelp = errors.New("help requested")

// Input is where settings come from, in rising precedence: defaults, the file, the environment, flags.
type Input struct {
	Args []string // flags and at most one positional argument, the file; without program and subcommand
	Env  []string // as os.Environ returns it
	// ReadFile reads the file; nil = os.ReadFile.
	ReadFile func(name string) ([]byte, error)
}

// Load reads and checks all settings. The error is ErrHelp or Errors.
func Load(in Input) (*Config, error) {
	l := newLoader()
	args := l.parseArgs(in.Args)
	if args.help {
		return nil, ErrHelp
	}
	if args.file != "" {
		read := in.ReadFile
		if read == nil {
			read = os.ReadFile
		}
		if data, err := read(args.file); err != nil {
			l.errs = append(l.errs, readError(args.file, err))
		} else {
			l.readFile(args.file, data)
		}
	}
	l.readEnv(in.Env)
	l.readFlags(args.flags)
	l.readLogVariable(in.Env)
	if len(l.errs) == 0 {
		l.finish()
	}
	if len(l.errs) > 0 {
		return nil, l.errs
	}
	return &l.Config, nil
}

// Development is the relay that runs without any settings: localhost:4443 on UDP and TCP, a generated certificate,
// everything public, internal endpoints on a loopback port.
func Development() *Config {
	c, err := Load(Input{Args: []string{
		"--listen=localhost:4443", "--listen-tls-generate=localhost,127.0.0.1,::1", "--web-http-listen=localhost:4443",
		"--auth-public=**", "--internal-listen=127.0.0.1:4444",
	}})
	if err != nil {
		panic(err) // a test holds this line
	}
	return c
}

// loader collects settings, errors and warnings.
type loader struct {
	draft
	errs Errors
}

// newLoader starts with the defaults.
func newLoader() *loader {
	l := &loader{draft: draft{origins: make(map[string]origin)}}
	for _, k := range keys {
		if k.def == "" {
			continue
		}
		raw, err := tomlValue(k.def)
		if err == nil {
			err = k.apply(&l.draft, raw)
		}
		if err != nil {
			panic(fmt.Sprintf("default of %s: %v", k.name, err)) // a test holds this line
		}
	}
	return l
}

// tomlValue decodes one TOML value.
func tomlValue(text string) (any, error) {
	var doc map[string]any
	_, err := toml.Decode("x = "+text, &doc)
	return doc["x"], err
}

// set lays one value over the draft.
func (l *loader) set(k *key, raw any, from origin) {
	if err := k.apply(&l.draft, raw); err != nil {
		l.errs.add(placeOf(err, from), k.name, "%v", err)
		return
	}
	l.origins[k.name] = from
}

// placeOf is where a value is wrong, as exactly as is known.
func placeOf(err error, from origin) string {
	var bad *cluster.EntryError
	if !errors.As(err, &bad) {
		return from.source
	}
	entry := fmt.Sprintf("[%d]", bad.Index)
	if source, ok := from.partOf(entry + "." + quotePart(bad.Field)); ok && bad.Field != "" {
		return source
	}
	if source, ok := from.partOf(entry); ok {
		return source
	}
	if source, ok := from.partOf("." + quotePart(bad.Field)); ok && bad.Field != "" { // a single peer, not in a list
		return source
	}
	return from.source
}

func (o origin) partOf(path string) (string, bool) {
	if o.part == nil {
		return "", false
	}
	return o.part(path)
}

// outside handles a setting that is none of ours. It reports false if nothing is known of it.
func (l *loader) outside(s spelling, name, source string, raw any) bool {
	if hint, ok := s.hint(name); ok {
		l.errs.add(source, shownKey(s, name), "%s", hint)
		return true
	}
	if o, ok := s.find(inert, name); ok {
		if !o.means(raw) {
			l.warn(source, o.name, "accepted without effect: %s", o.why)
		}
		return true
	}
	o, ok := s.find(unsupported, name)
	if ok && !o.means(raw) {
		l.errs.add(source, shownKey(s, name), "%s", o.why)
	}
	return ok
}

// shownKey is the name of a key for a message that already names its spelling in the place.
func shownKey(s spelling, name string) string {
	if s.sep == inFile.sep {
		return name
	}
	return ""
}

func (l *loader) warn(source, key, format string, args ...any) {
	l.Warnings = append(l.Warnings, (&Error{Source: source, Key: key, Reason: fmt.Sprintf(format, args...)}).Error())
}
