package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/lite/message"
)

// text is a value from the environment or the command line, where everything is text. Values from the file have the
// types of TOML: string, int64, float64, bool, time.Time, []any, map[string]any, []map[string]any.
type text string

// kind is a type of settings: what it is called, and how a value is read.
type kind[T any] struct {
	name    string // in the reference
	arg     string // in the help text; empty for booleans
	boolean bool   // a flag without value means true
	list    bool   // flags may be repeated
	read    func(raw any) (T, error)
}

// wrongType is the error for a TOML value of a type that does not fit.
func wrongType(raw any, want string) error {
	have := "a value of another type"
	switch raw.(type) {
	case string:
		have = "text"
	case int64, float64:
		have = "a number"
	case bool:
		have = "true or false"
	case []any, []map[string]any:
		have = "a list"
	case map[string]any:
		have = "a table"
	case time.Time:
		have = "a date"
	}
	return fmt.Errorf("want %s, not %s", want, have)
}

// asText reads a string from either source.
func asText(raw any, want string) (string, error) {
	switch v := raw.(type) {
	case string:
		return v, nil
	case text:
		return string(v), nil
	}
	return "", wrongType(raw, want)
}

// texts makes a kind out of a parser of text. The parser's errors say what is wanted; the value is put before them.
func texts[T any](name, arg, want string, parse func(string) (T, error)) kind[T] {
	return kind[T]{name: name, arg: arg, read: func(raw any) (T, error) {
		s, err := asText(raw, want)
		if err != nil {
			var zero T
			return zero, err
		}
		v, err := parse(s)
		if err != nil {
			return v, fmt.Errorf("%q is %w", s, err)
		}
		return v, nil
	}}
}

var (
	textKind     = kind[string]{name: "text", arg: "TEXT", read: func(raw any) (string, error) { return asText(raw, "text") }}
	fileKind     = kind[string]{name: "file", arg: "FILE", read: textKind.read}
	pathKind     = texts("path", "PATH", "a path", parsePath)
	addressKind  = texts("address", "HOST:PORT", `an address such as "[::]:443"`, parseAddress)
	durationKind = texts("duration", "DURATION", `a duration with a unit such as "10s"`, parseDuration)
	levelKind    = texts("level", "LEVEL", "a level", parseLevel)
	redirectKind = texts("policy", "POLICY", "a policy", parseRedirect)
	capacityKind = kind[Capacity]{name: "size or percentage", arg: "SIZE", read: readCapacity}
	sizeKind     = kind[uint64]{name: "size", arg: "SIZE", read: readSize}
	numberKind   = kind[uint64]{name: "whole number", arg: "N", read: readNumber}
	factorKind   = kind[float64]{name: "number", arg: "X", read: readFactor}
	boolKind     = kind[bool]{name: "true or false", boolean: true, read: readBool}
	listKind     = kind[[]string]{name: "list of text", arg: "TEXT,…", list: true, read: readList}
	filesKind    = kind[[]string]{name: "list of files", arg: "FILE,…", list: true, read: readList}
	patternsKind = kind[[]string]{name: "list of patterns", arg: "PATTERN,…", list: true, read: readList}
	pinsKind     = kind[[]string]{name: "list of fingerprints", arg: "HEX,…", list: true, read: each(parsePin)}
	versionsKind = kind[[]message.Version]{name: "list of versions", arg: "VERSION,…", list: true, read: readVersions}
	peersKind    = kind[[]any]{name: "list of peers", arg: "URL,…", list: true, read: readPeers}
)

// parseAddress checks host:port without resolving the host.
func parseAddress(s string) (string, error) {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", errors.New(`not an address such as "[::]:443" or "localhost:4443"`)
	}
	return s, nil
}

var levels = map[string]slog.Level{
	"trace": LevelTrace, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

func parseLevel(s string) (slog.Level, error) {
	level, ok := levels[strings.ToLower(s)]
	if !ok {
		return 0, errors.New("not one of trace, debug, info, warn, error")
	}
	return level, nil
}

func parseRedirect(s string) (cluster.Redirect, error) {
	for _, r := range []cluster.Redirect{cluster.RedirectSameHost, cluster.RedirectFollow, cluster.RedirectIgnore} {
		if s == r.String() {
			return r, nil
		}
	}
	return 0, errors.New("not one of follow, same-host, ignore")
}

func readBool(raw any) (bool, error) {
	switch v := raw.(type) {
	case bool:
		return v, nil
	case text:
		switch v {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return false, fmt.Errorf("%q is not true or false", string(v))
	}
	return false, wrongType(raw, "true or false")
}

func readNumber(raw any) (uint64, error) {
	switch v := raw.(type) {
	case int64:
		if v < 0 {
			return 0, fmt.Errorf("%d is negative", v)
		}
		return uint64(v), nil
	case text:
		n, err := strconv.ParseUint(string(v), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is not a whole number", string(v))
		}
		return n, nil
	}
	return 0, wrongType(raw, "a whole number")
}

func readFactor(raw any) (x float64, err error) {
	switch v := raw.(type) {
	case int64:
		x = float64(v)
	case float64:
		x = v
	case text:
		if x, err = strconv.ParseFloat(string(v), 64); err != nil {
			return 0, fmt.Errorf("%q is not a number", string(v))
		}
	default:
		return 0, wrongType(raw, "a number")
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%v is not a number to count with", x)
	}
	return x, nil
}

func readSize(raw any) (uint64, error) {
	if n, ok := raw.(int64); ok {
		if n < 0 {
			return 0, fmt.Errorf("%d is negative", n)
		}
		return uint64(n), nil
	}
	s, err := asText(raw, `a size such as "64MiB"`)
	if err != nil {
		return 0, err
	}
	n, err := parseSize(s)
	if err != nil {
		return 0, fmt.Errorf("%q is %w", s, err)
	}
	return uint64(n), nil
}

// readCapacity reads a size or a percentage.
func readCapacity(raw any) (Capacity, error) {
	if s, err := asText(raw, ""); err == nil {
		if digits, ok := strings.CutSuffix(strings.TrimSpace(s), "%"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 8)
			if err != nil || n < 1 || n > 100 {
				return Capacity{}, fmt.Errorf("%q is not from 1%% to 100%%", s)
			}
			return Capacity{Percent: int64(n)}, nil
		}
	}
	n, err := readSize(raw)
	if err != nil {
		return Capacity{}, err
	}
	if n == 0 || n > math.MaxInt64 {
		return Capacity{}, errors.New("must be more than nothing")
	}
	return Capacity{Bytes: int64(n)}, nil
}

// readList reads a list of text. One text alone is a list of one, an empty one an empty list; in the environment and
// on the command line commas separate.
func readList(raw any) ([]string, error) {
	const want = "text or a list of text"
	switch v := raw.(type) {
	case string:
		if v == "" {
			return []string{}, nil
		}
		return []string{v}, nil
	case text:
		out := []string{}
		for item := range strings.SplitSeq(string(v), ",") {
			if item = strings.TrimSpace(item); item != "" {
				out = append(out, item)
			}
		}
		return out, nil
	case []any:
		out := make([]string, len(v))
		for i, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, wrongType(item, want)
			}
			out[i] = s
		}
		return out, nil
	}
	return nil, wrongType(raw, want)
}

// each reads a list and parses its items.
func each(parse func(string) (string, error)) func(any) ([]string, error) {
	return func(raw any) ([]string, error) {
		list, err := readList(raw)
		if err != nil {
			return nil, err
		}
		for i, item := range list {
			if list[i], err = parse(item); err != nil {
				return nil, fmt.Errorf("%q is %w", item, err)
			}
		}
		return list, nil
	}
}

// parsePin reads the SHA-256 of a certificate, with or without colons.
func parsePin(s string) (string, error) {
	pin := strings.ToLower(strings.ReplaceAll(s, ":", ""))
	if raw, err := hex.DecodeString(pin); err != nil || len(raw) != 32 {
		return "", errors.New("not a SHA-256 of 64 hex digits")
	}
	return pin, nil
}

// versions are those that are spoken, newest first.
var versions = []message.Version{message.Lite06, message.Lite05, message.Lite04, message.Lite03, message.Lite02, message.Lite01}

// readVersions reads a list of versions and brings it into the order of preference.
func readVersions(raw any) ([]message.Version, error) {
	list, err := readList(raw)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("no version is left to speak")
	}
	var out []message.Version
	for _, name := range list {
		at := slices.IndexFunc(versions, func(v message.Version) bool { return v.String() == name })
		switch {
		case at >= 0:
			out = append(out, versions[at])
		case name == "moq-lite-07-wip", strings.HasPrefix(name, "moq-transport-"):
			return nil, fmt.Errorf("%q is not supported yet", name)
		default:
			return nil, fmt.Errorf("%q is not one of moq-lite-01 to moq-lite-06", name)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return slices.Compact(out), nil
}

// readPeers reads what cluster.Parse takes: one peer or a list of them, each text or a table.
func readPeers(raw any) ([]any, error) {
	switch v := raw.(type) {
	case text:
		list, err := readList(v)
		out := make([]any, len(list))
		for i, item := range list {
			out[i] = item
		}
		return out, err
	case string:
		if v == "" {
			return []any{}, nil
		}
		return []any{v}, nil
	case map[string]any:
		return []any{v}, nil
	case []any:
		return v, nil
	case []map[string]any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = item
		}
		return out, nil
	}
	return nil, wrongType(raw, "a peer or a list of peers")
}
