package config

import (
	"fmt"
	"strings"
)

// draft is a configuration while the layers are laid over each other. What only makes sense together stays as it was
// written until all layers are in.
type draft struct {
	Config
	origins map[string]origin // of the keys that some layer has set, by name

	peers                 []any // of cluster.connect
	node, token, peerList string
	lanSecret             string
	certs, certKeys       []string // of listen.tls
	webCerts, webCertKeys []string // of web.https
	auth                  authDraft
	maxStreams, maxHops   uint64
	statsInterval         uint64 // seconds
	statsDepth            uint64
}

// has reports whether some layer has set a key.
func (d *draft) has(key string) bool {
	_, ok := d.origins[key]
	return ok
}

// origin says where the value of a key comes from.
type origin struct {
	source string // for messages
	// part returns the place of a part of the value, such as "[2].cost", where there is one; may be nil.
	part func(path string) (source string, ok bool)
}

// key is one setting. Everything that is known of it is here: parsers, help, example and reference read the same
// table.
type key struct {
	name    string // section and name, with dots
	flag    string // without dashes
	env     string
	kind    string
	arg     string // for the help text
	boolean bool
	list    bool
	def     string // default as TOML text; empty = none
	example string // TOML text for a key without a default
	doc     string // starts with a capital letter, ends with a full stop
	needed  bool   // set in the example file although it has no default
	// apply reads a raw value (see kind.read), checks it and stores it.
	apply func(d *draft, raw any) error
}

// about is what a key needs beside its type.
type about struct {
	def, example, doc string
	needed            bool
}

// newKey ties a kind to a field of the draft. checks run on the value of every layer.
func newKey[T any](name string, k kind[T], a about, field func(*draft) *T, checks ...func(T) error) *key {
	return &key{
		name: name, flag: flagName(name), env: envName(name),
		kind: k.name, arg: k.arg, boolean: k.boolean, list: k.list,
		def: a.def, example: a.example, doc: a.doc, needed: a.needed,
		apply: func(d *draft, raw any) error {
			v, err := k.read(raw)
			if err != nil {
				return err
			}
			for _, check := range checks {
				if err := check(v); err != nil {
					return err
				}
			}
			*field(d) = v
			return nil
		},
	}
}

// section is the part of a key's name before the first dot: the table of the file. It is empty for keys at the top.
func (k *key) section() string {
	section, _, found := strings.Cut(k.name, ".")
	if !found {
		return ""
	}
	return section
}

// short is the name of a key within its section.
func (k *key) short() string { return strings.TrimPrefix(k.name, k.section()+".") }

// Names of flags and variables that do not follow the rule.
var (
	flagExceptions = map[string]string{
		"listen.bind":         "listen",
		"connect.url":         "connect",
		"cluster.lan.enabled": "cluster-lan",
		"listen.lb_id":        "listen-quic-lb-id",
		"listen.lb_nonce":     "listen-quic-lb-nonce",
	}
	envExceptions = map[string]string{
		"listen.bind":         "MOQ_LISTEN",
		"cluster.lan.enabled": "MOQ_CLUSTER_LAN",
	}
	// Below these, "connect" is left out.
	withoutConnectFlag = []string{"connect.backoff.", "connect.goaway."}
	withoutConnectEnv  = []string{"connect.backoff."}
)

// flagName is the flag of a key: its name with dashes.
func flagName(name string) string {
	if flag, ok := flagExceptions[name]; ok {
		return flag
	}
	name = withoutConnect(name, withoutConnectFlag)
	return strings.NewReplacer(".", "-", "_", "-").Replace(name)
}

// envName is the variable of a key: its name in capitals with underscores.
func envName(name string) string {
	if env, ok := envExceptions[name]; ok {
		return env
	}
	name = withoutConnect(name, withoutConnectEnv)
	return "MOQ_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

func withoutConnect(name string, prefixes []string) string {
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return strings.TrimPrefix(name, "connect.")
		}
	}
	return name
}

// Checks of values.

func atLeast[T int64 | uint64 | float64](least T) func(T) error {
	return func(v T) error {
		if v < least {
			return fmt.Errorf("%v is less than %v", v, least)
		}
		return nil
	}
}

func between[T int64 | uint64](least, most T) func(T) error {
	return func(v T) error {
		if v < least || v > most {
			return fmt.Errorf("%d is not from %d to %d", v, least, most)
		}
		return nil
	}
}
