package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/config"
)

// minimal is what no relay starts without.
const minimal = "[auth]\npublic = \"**\"\n[listen]\ntls.generate = \"localhost\"\n"

// load reads a document as the file relay.toml.
func load(doc string, args ...string) (*config.Config, error) {
	return loadEnv(doc, nil, args...)
}

func loadEnv(doc string, env []string, args ...string) (*config.Config, error) {
	return config.Load(config.Input{
		Args: append([]string{"relay.toml"}, args...), Env: env,
		ReadFile: func(name string) ([]byte, error) {
			if name != "relay.toml" {
				return nil, os.ErrNotExist
			}
			return []byte(doc), nil
		},
	})
}

// TestMistyped: every row of "Mistyped setting" (faults 5). Each is refused with file, line and key.
func TestMistyped(t *testing.T) {
	tests := map[string]struct {
		doc  string   // after which the minimal document follows
		want []string // parts of the message
	}{
		"section":                {"[clutser]\nid = 1\n", []string{"relay.toml:1: clutser: unknown section", "[cluster]"}},
		"key":                    {"\n[cluster]\nconect = []\n", []string{"relay.toml:3: cluster.conect: unknown key", "connect, connect_api, node"}},
		"key in the wrong table": {"[cluster]\nidle_timeout = \"10s\"\n", []string{"relay.toml:2: cluster.idle_timeout: unknown key", "there is quic.idle_timeout"}},
		"key without a table":    {"idle_timeout = \"10s\"\n", []string{"relay.toml:1: idle_timeout: unknown key", "there is quic.idle_timeout", "[quic]", "drain_timeout"}},
		"sub-table":              {"[connect.tsl]\nroot = []\n", []string{"relay.toml:1: connect.tsl: unknown section"}},
		"quoted name":            {"\"listen.bind\" = \"[::]:1\"\n", []string{`relay.toml:1: "listen.bind": unknown key`}},
		"other case":             {"[Cluster]\nid = 1\n", []string{"relay.toml:1: Cluster: unknown section"}},
		"value for a section":    {"cluster = 1\n", []string{"relay.toml:1: cluster: is a section"}},
		"section for a value":    {"[cluster.id]\nx = 1\n", []string{"relay.toml:1: cluster.id: want a whole number, not a table"}},
		"duration is a number":   {"[quic]\nidle_timeout = 10\n", []string{"relay.toml:2: quic.idle_timeout: want a duration with a unit", "not a number"}},
		"duration without unit":  {"[quic]\nidle_timeout = \"10\"\n", []string{`relay.toml:2: quic.idle_timeout: "10" is not a duration`, "a unit is required"}},
		"negative duration":      {"[quic]\nidle_timeout = \"-1s\"\n", []string{`relay.toml:2: quic.idle_timeout: "-1s" is not a duration`}},
		"hedge too short":        {"[cluster]\nhedge = \"50ms\"\n", []string{`relay.toml:2: cluster.hedge: less than 100ms`}},
		"no announcements":       {"[limits]\nannounce_rate = 0\n", []string{"relay.toml:2: limits.announce_rate: "}},
		"many announcements":     {"[limits]\nannounce_rate = 1000001\n", []string{"relay.toml:2: limits.announce_rate: "}},
		"half an announcement":   {"[limits]\nannounce_rate = 0.5\n", []string{"relay.toml:2: limits.announce_rate: want a whole number"}},
		"no idle timeout":        {"[quic]\nidle_timeout = \"0s\"\n", []string{"relay.toml:2: quic.idle_timeout: must be more than nothing"}},
		"text is a number":       {"[cluster]\ntier = 1\n", []string{"relay.toml:2: cluster.tier: want text, not a number"}},
		"text is a date":         {"[cluster]\ntier = 1979-05-27\n", []string{"relay.toml:2: cluster.tier: want text, not a date"}},
		"bool is text":           {"[connect]\ntls.insecure = \"yes\"\n", []string{"relay.toml:2: connect.tls.insecure: want true or false, not text"}},
		"list of numbers":        {"[auth]\npublic_publish = [1]\n", []string{"relay.toml:2: auth.public_publish: want text or a list of text, not a number"}},
		"address":                {"[listen]\nbind = \"localhost\"\n", []string{`relay.toml:2: listen.bind: "localhost" is not an address`}},
		"port":                   {"[listen]\nbind = \"[::]:65536\"\n", []string{"relay.toml:2: listen.bind:"}},
		"level":                  {"[log]\nlevel = \"loud\"\n", []string{`relay.toml:2: log.level: "loud" is not one of trace, debug`}},
		"policy":                 {"[connect.goaway]\nredirect = \"always\"\n", []string{`relay.toml:2: connect.goaway.redirect: "always" is not one of follow`}},
		"size":                   {"[cache]\ncapacity = \"lots\"\n", []string{`relay.toml:2: cache.capacity: "lots" is not a size`}},
		"percentage":             {"[cache]\ncapacity = \"101%\"\n", []string{`relay.toml:2: cache.capacity: "101%" is not from 1%`}},
		"no cache":               {"[cache]\ncapacity = 0\n", []string{"relay.toml:2: cache.capacity: must be more than nothing"}},
		"no streams":             {"[quic]\nmax_streams = 0\n", []string{"relay.toml:2: quic.max_streams: 0 is not from 1"}},
		"small window":           {"[quic]\nreceive_window = 1\n", []string{"relay.toml:2: quic.receive_window: 1 is not from 16384"}},
		"shrinking backoff":      {"[connect.backoff]\nmultiplier = 0.5\n", []string{"relay.toml:2: connect.backoff.multiplier: 0.5 is less than 1"}},
		"infinite backoff":       {"[connect.backoff]\nmultiplier = inf\n", []string{"relay.toml:2: connect.backoff.multiplier:"}},
		"tiny longest pause":     {"[connect.backoff]\nmax = \"10ms\"\n", []string{"relay.toml:2: connect.backoff.max: less than 50ms"}},
		"negative patience":      {"[connect.backoff]\ntimeout = \"-1s\"\n", []string{"relay.toml:2: connect.backoff.timeout:"}},
		"tiny backoff":           {"[connect.backoff]\ninitial = \"10ms\"\n", []string{"relay.toml:2: connect.backoff.initial: less than 50ms"}},
		"version":                {"[listen]\nversion = [\"moq-lite-06\", \"moq-lite-7\"]\n", []string{`relay.toml:2: listen.version: "moq-lite-7" is not one of`}},
		"version not built":      {"[listen]\nversion = \"moq-transport-18\"\n", []string{`relay.toml:2: listen.version: "moq-transport-18" is not supported yet`}},
		"no version":             {"[listen]\nversion = []\n", []string{"relay.toml:2: listen.version: no version is left"}},
		"fingerprint":            {"[connect.tls]\nfingerprint = \"abcd\"\n", []string{`relay.toml:2: connect.tls.fingerprint: "abcd" is not a SHA-256`}},
		"pattern":                {"[auth]\npublic_publish = [\n\"anon\"]\n", []string{`relay.toml:2: auth.public_publish: pattern has no wildcard: "anon", write "anon/**"`}},
		"id 0":                   {"[cluster]\nid = 0\n", []string{"relay.toml:2: cluster.id: 0 is not from 1 to 4611686018427387903"}},
		"id -1":                  {"[cluster]\nid = -1\n", []string{"relay.toml:2: cluster.id: -1 is negative"}},
		"id 2^62":                {"[cluster]\nid = 4611686018427387904\n", []string{"relay.toml:2: cluster.id: 4611686018427387904 is not from 1"}},
		"id 2^64":                {"[cluster]\nid = 18446744073709551616\n", []string{"relay.toml:2: cluster.id:", "out of range"}},
		"max_hops 0":             {"[cluster]\nmax_hops = 0\n", []string{"relay.toml:2: cluster.max_hops: 0 is not from 1 to 32"}},
		"max_hops 33":            {"[cluster]\nmax_hops = 33\n", []string{"relay.toml:2: cluster.max_hops: 33 is not from 1 to 32"}},
		"peer field":             {"[cluster]\nconnect = [\n  \"https://a/\",\n  { url = \"https://b/\", cosst = 1 },\n]\n", []string{"relay.toml:4: cluster.connect: entry 2 (https://b)", `"cosst": unknown field`}},
		"field of a lone peer":   {"[cluster]\nconnect = { url = \"https://b/\", cosst = 1 }\n", []string{"relay.toml:2: cluster.connect:", "cosst"}},
		"field of a peer table":  {"[[cluster.connect]]\nurl = \"https://a/\"\n[[cluster.connect]]\nurl = \"https://b/\"\ncosst = 1\n", []string{"relay.toml:5: cluster.connect: entry 2", "cosst"}},
		"cost -1":                {"[cluster]\nconnect = [\"https://a/\",\n\"https://b/?cost=-1\"]\n", []string{"relay.toml:3: cluster.connect: entry 2 (https://b:443): cost is not"}},
		"cost 1e3":               {"[cluster]\nconnect = \"https://b/?cost=1e3\"\n", []string{"relay.toml:2: cluster.connect: entry 1 (https://b:443): cost is not"}},
		"cost 1e3 in a field":    {"[cluster]\nconnect = [{url = \"https://b/\", cost = 1e3}]\n", []string{"relay.toml:2: cluster.connect:", `"cost": cost is not`}},
		"empty cost":             {"[cluster]\nconnect = \"https://b/?cost=\"\n", []string{"relay.toml:2: cluster.connect:", "cost is not"}},
		"cost 2^64":              {"[cluster]\nconnect = \"https://b/?cost=18446744073709551616\"\n", []string{"relay.toml:2: cluster.connect:", "cost is not"}},
		"cost field 2^64":        {"[cluster]\nconnect = [{url = \"https://b/\",\ncost = 18446744073709551616}]\n", []string{"relay.toml:3:", "out of range"}},
		"bare host":              {"[cluster]\nconnect = \"b.example:443\"\n", []string{"relay.toml:2: cluster.connect:", "b.example:443", "bare host"}},
		"peer twice":             {"[cluster]\nconnect = [\"https://b/\",\n\"https://B:443?cost=5\"]\n", []string{"relay.toml:3: cluster.connect: entry 2", "listed twice"}},
		"carrier not built":      {"[cluster]\nconnect = \"tcp://b:1/\"\n", []string{"relay.toml:2: cluster.connect:", "tcp://b:1", "cannot be dialed yet"}},
		"peer is a number":       {"[cluster]\nconnect = [1]\n", []string{"relay.toml:2: cluster.connect: entry 1: an entry is a URL or an object"}},
		"node":                   {"[cluster]\nnode = \"ftp://h/\"\n", []string{"relay.toml:2: cluster.node: unknown scheme"}},
		"peer list":              {"[cluster]\nconnect_api = \"ftp://api/\"\n", []string{"relay.toml:2: cluster.connect_api: a peer list is behind"}},
		"bad UTF-8":              {"[cluster]\n\ntier = \"\xff\"\n", []string{"relay.toml:3: ", "not valid TOML: invalid UTF-8"}},
		"cut":                    {"[cluster]\nconnect = [\"https://a/\"", []string{"relay.toml:", "not valid TOML"}},
		"key twice":              {"[cluster]\nid = 1\nid = 2\n", []string{"relay.toml:3: cluster.id: not valid TOML", "already been defined"}},
		"section twice":          {"[cluster]\nid = 1\n[cluster]\n", []string{"relay.toml:3: ", "not valid TOML"}},
		"no value":               {"[cluster]\nid =\n", []string{"relay.toml:2: cluster.id: not valid TOML"}},
		"congestion":             {"[cluster]\ncongestion = \"BBR 3\"\n", []string{`relay.toml:2: cluster.congestion: "BBR 3" is no name`}},
		"stats, empty prefix":    {"[stats]\nprefix = \"/\"\n", []string{"relay.toml:2: stats.prefix: must not be empty"}},
		"stats, deep node":       {"[stats]\nnode = \"" + strings.Repeat("a/", 40) + "\"\n", []string{"relay.toml:2: stats.node:", "is no path"}},
		"headroom":               {"[cache]\nheadroom = \"0B\"\n", []string{"relay.toml:2: cache.headroom:"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := load(tt.doc)
			var all config.Errors
			if !errors.As(err, &all) || c != nil {
				t.Fatalf("got %v, %v", c, err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("message %q lacks %q", err, part)
				}
			}
			if len(all) != 1 {
				t.Errorf("%d errors: %v", len(all), err)
			}
		})
	}
}

// TestAllErrorsAtOnce: one run shows everything that is wrong, in the order of the file.
func TestAllErrorsAtOnce(t *testing.T) {
	_, err := loadEnv("[listen]\nzind = 1\nbind = 1\n[cluster]\nid = 0\n[aaa]\n", []string{"MOQ_LOG_LEVEL=loud"}, "--cluster-max-hops=99")
	var all config.Errors
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	var got []string
	for _, e := range all {
		got = append(got, e.Source+" "+e.Key)
	}
	want := []string{"relay.toml:2 listen.zind", "relay.toml:3 listen.bind", "relay.toml:5 cluster.id", "relay.toml:6 aaa", "MOQ_LOG_LEVEL log.level", "--cluster-max-hops cluster.max_hops"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestUnreadableFile(t *testing.T) {
	dir := t.TempDir()
	for path, reason := range map[string]string{dir: "is a directory", filepath.Join(dir, "none.toml"): "no such file"} {
		_, err := config.Load(config.Input{Args: []string{path}})
		if err == nil || !strings.Contains(err.Error(), path+": cannot be read: "+reason) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}

// TestCrossChecks: rules between keys (config.md, "Cross checks at startup"). The message names the flag where no
// layer has set the key.
func TestCrossChecks(t *testing.T) {
	token := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(token, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ doc, want string }{
		"nobody can connect":     {"[listen]\ntls.generate = \"localhost\"\n", "auth.public (--auth-public): nobody could connect"},
		"LAN secret, no LAN":     {minimal + "[cluster]\nlan.secret = \"" + strings.Repeat("ab", 32) + "\"\n", "relay.toml:6: cluster.lan.secret: without effect"},
		"LAN app, LAN off":       {minimal + "[cluster.lan]\nenabled = false\napp = \"x\"\n", "relay.toml:7: cluster.lan.app: without effect"},
		"LAN, nothing to trust":  {"[listen]\ntls.cert = \"a\"\ntls.key = \"b\"\n[auth]\npublic = \"**\"\n[cluster.lan]\nenabled = true\n", "relay.toml:7: cluster.lan.enabled: peers would have nothing to trust"},
		"LAN, token in the node": {minimal + "[cluster]\nnode = \"https://a/?cost=1&jwt=S3CRET\"\nlan.enabled = true\n", "relay.toml:6: cluster.node: with cluster.lan it is shown to everybody"},
		"LAN, long node":         {minimal + "[cluster]\nnode = \"https://a/" + strings.Repeat("a", 250) + "\"\nlan.enabled = true\n", "relay.toml:6: cluster.node: with cluster.lan it is shown to everybody"},
		"LAN, old versions":      {minimal + "[cluster.lan]\nenabled = true\n[connect]\nversion = \"moq-lite-04\"\n", "relay.toml:6: cluster.lan.enabled: listen.version and connect.version have no version in common"},
		"LAN, versions apart":    {"[listen]\ntls.generate = \"localhost\"\nversion = [\"moq-lite-05\", \"moq-lite-03\"]\n[auth]\npublic = \"**\"\n[cluster.lan]\nenabled = true\n[connect]\nversion = [\"moq-lite-06\", \"moq-lite-03\"]\n", "relay.toml:7: cluster.lan.enabled: listen.version and connect.version have no version in common"},
		"LAN, bad secret":        {minimal + "[cluster.lan]\nenabled = true\nsecret = \"S3CRET\"\n", "relay.toml:7: cluster.lan.secret: neither 64 hex digits nor a file that can be read: no such file"},
		"LAN, empty secret":      {minimal + "[cluster.lan]\nenabled = true\nsecret = \"\"\n", "relay.toml:7: cluster.lan.secret: is empty"},
		"LAN, empty secret file": {minimal + "[cluster.lan]\nenabled = true\nsecret = \"" + token + "\"\n", "relay.toml:7: cluster.lan.secret: the file does not hold what it should: not 64 hex digits"},
		"empty rules":            {"[listen]\ntls.generate = \"localhost\"\n[auth]\npublic = \"\"\n", "relay.toml:4: auth.public: nobody could connect"},
		"empty list of rules":    {"[listen]\ntls.generate = \"localhost\"\n[auth]\npublic = []\n", "relay.toml:4: auth.public: nobody could connect"},
		"empty section of rules": {"[listen]\ntls.generate = \"localhost\"\n[auth]\n", "auth.public (--auth-public): nobody could connect"},
		"two deciders":           {minimal + "[auth.local]\nkey = \"k\"\n", "relay.toml:6: auth.local.key: only one of auth.url, public rules"},
		"public and a server":    {minimal + "[auth]\nurl = \"https://S3CRET@a/\"\n", "relay.toml:"},
		"server over http":       {"[auth]\nurl = \"http://S3CRET@a/\"\n", "relay.toml:2: auth.url: want https://…"},
		"CA and public rules":    {minimal + "tls.root = \"a.pem\"\n", "relay.toml:5: listen.tls.root: client certificates are asked for, but public rules"},
		"web CA and public":      {minimal + "[web]\nhttps.root = \"a.pem\"\n", "relay.toml:6: web.https.root: client certificates are asked for, but public rules"},
		"two places for keys":    {decided("key = \"a\"\nkey_dir = \"b\"\n"), "relay.toml:5: auth.local.key_dir: only one of key, key_dir and jwks"},
		"keys over http":         {decided("jwks = \"http://S3CRET@a/\"\n"), "relay.toml:4: auth.local.jwks: http is for loopback addresses only"},
		"rules for nobody":       {decided("tier = \"a\"\n"), "relay.toml:4: auth.local.tier: no key, public rule or certificate rule"},
		"no key at all":          {decided("key = \"\"\n"), "relay.toml:4: auth.local.key: no key, public rule or certificate rule"},
		"rule without wildcard":  {decided("public_publish = \"a\"\n"), "relay.toml:4: auth.local.public_publish: pattern has no wildcard: \"a\", write \"a/**\""},
		"asking without an end":  {decided("key = \"a\"\nrevalidate = \"1s\"\n"), "relay.toml:5: auth.local.revalidate: revalidate needs expires"},
		"limit without asking":   {decided("key = \"a\"\nlimit_remote = 1\n"), "relay.toml:5: auth.local.limit_remote: limits need revalidate"},
		"peers without a rule":   {decided("key = \"a\"\nmtls_peer = true\n"), "relay.toml:5: auth.local.mtls_peer: certificates make peers only"},
		"asking all the time":    {decided("key = \"a\"\nexpires = \"1s\"\nrevalidate = \"0s\"\n"), "relay.toml:6: auth.local.revalidate: must be more than nothing"},
		"no certificate":         {"[auth]\npublic = \"**\"\n", "listen.tls.cert (--listen-tls-cert): QUIC needs a certificate"},
		"nobody to generate for": {"[auth]\npublic = \"**\"\n[listen]\ntls.generate = []\n", "relay.toml:4: listen.tls.generate: QUIC needs a certificate"},
		"certificate, no key":    {minimal + "tls.cert = \"a.pem\"\n", "relay.toml:5: listen.tls.cert: certificates and keys"},
		"key, no certificate":    {minimal + "tls.key = \"a.pem\"\n", "relay.toml:5: listen.tls.key: certificates and keys"},
		"two certificates":       {minimal + "tls.cert = [\"a.pem\", \"b.pem\"]\ntls.key = \"a.pem\"\n", "relay.toml:6: listen.tls.key: certificates and keys"},
		"HTTPS, no certificate":  {minimal + "[web]\nhttps.listen = \"[::]:443\"\n", "relay.toml:6: web.https.listen: HTTPS needs"},
		"HTTPS, no key":          {minimal + "[web]\nhttps.listen = \"[::]:443\"\nhttps.cert = \"a.pem\"\n", "relay.toml:7: web.https.cert: certificates and keys"},
		"trusting nothing":       {minimal + "[connect]\ntls.system_roots = false\n", "relay.toml:6: connect.tls.system_roots: no certificate would be trusted"},
		"peer list, no trust":    {minimal + "[connect]\ntls.system_roots = false\ntls.fingerprint = \"" + strings.Repeat("ab", 32) + "\"\n[cluster]\nconnect_api = \"https://api/?key=S3CRET\"\n", "relay.toml:9: cluster.connect_api: nobody is trusted"},
		"client cert, no key":    {minimal + "[connect]\ntls.cert = \"a.pem\"\n", "relay.toml:6: connect.tls.cert: connect.tls.cert and connect.tls.key go together"},
		"client key, no cert":    {minimal + "[connect]\ntls.key = \"a.pem\"\n", "relay.toml:6: connect.tls.key: connect.tls.cert and connect.tls.key go together"},
		"no token file":          {minimal + "[cluster]\ntoken = \"/does/not/exist\"\n", "relay.toml:6: cluster.token: the token cannot be read: no such file"},
		"empty token file":       {minimal + "[cluster]\ntoken = '" + token + "'\n", "relay.toml:6: cluster.token: the token cannot be read"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := load(tt.doc); err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "S3CRET") {
				t.Errorf("error %v, want %s…", err, tt.want)
			}
		})
	}
}

// decided is a file with a decider of its own, whose settings begin on the fourth line.
func decided(settings string) string {
	return "[listen]\ntls.generate = \"localhost\"\n[auth.local]\n" + settings
}

func TestWarnings(t *testing.T) {
	self := "[cluster]\nnode = \"us.example\"\nconnect = [\"https://us.example/\", \"https://eu.example/\"]\n"
	tests := map[string]struct {
		doc  string
		env  []string
		want string // empty = none
	}{
		"nothing":                 {"", nil, ""},
		"id of 2^53":              {"[cluster]\nid = 9007199254740992\n", nil, "relay.toml:6: cluster.id: 2^53 or more"},
		"id below 2^53":           {"[cluster]\nid = 9007199254740991\n", nil, ""},
		"keep-alive too long":     {"[quic]\nkeep_alive = \"10s\"\n", nil, "relay.toml:6: quic.keep_alive: 10s is not below quic.idle_timeout (10s)"},
		"idle timeout too short":  {"[quic]\nidle_timeout = \"2s\"\n", nil, "quic.keep_alive: 3s is not below quic.idle_timeout (2s)"},
		"hedge without effect":    {"[cluster]\nhedge = \"10s\"\n", nil, "relay.toml:6: cluster.hedge: 10s is not below quic.idle_timeout (10s)"},
		"keep-alive off":          {"[quic]\nkeep_alive = \"0s\"\n", nil, ""},
		"keep-alive off, peers":   {"[quic]\nkeep_alive = \"0s\"\n[cluster]\nconnect = \"https://a/\"\n", nil, "relay.toml:6: quic.keep_alive: 0s: sessions with peers"},
		"internal in public":      {"[internal]\nlisten = \"[::]:4444\"\n", nil, "relay.toml:6: internal.listen:"},
		"internal on loopback":    {"[internal]\nlisten = \"127.0.0.1:4444\"\n", nil, ""},
		"internal on a private":   {"[internal]\nlisten = \"10.0.0.1:4444\"\n", nil, ""},
		"insecure":                {"[connect]\ntls.insecure = true\n", nil, "relay.toml:6: connect.tls.insecure:"},
		"ourselves in the list":   {self, nil, "relay.toml:7: cluster.connect: our own address"},
		"HTTPS off":               {"[web]\nhttps.cert = \"a\"\nhttps.key = \"a\"\n", nil, "relay.toml:6: web.https.cert: without effect"},
		"inert key":               {"[quic]\nqlog = \"/tmp/q\"\n", nil, "relay.toml:6: quic.qlog: accepted without effect"},
		"inert key, what happens": {"[quic]\ncongestion_control = \"loss\"\n", nil, ""},
		"unknown variable":        {"", []string{"MOQ_LISTEN_PORT=tcp://10.0.0.1:80"}, "MOQ_LISTEN_PORT: unknown variable, ignored"},
		"other variable":          {"", []string{"MOQ_SOMETHING=1", "MOQMESH=1"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			doc := minimal
			if tt.doc != "" {
				doc += tt.doc
			}
			c, err := loadEnv(doc, tt.env)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(c.Warnings, "\n")
			if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) || len(c.Warnings) > 1 {
				t.Errorf("warnings %q, want %q", got, tt.want)
			}
		})
	}
}

// TestOurselvesAreNotDialed goes with the warning.
func TestOurselvesAreNotDialed(t *testing.T) {
	c, err := load(minimal + "[cluster]\nnode = \"us.example\"\nconnect = [\"https://us.example/\", \"https://eu.example/\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Cluster.Peers) != 1 || c.Cluster.Peers[0].Key() != "https://eu.example/" || c.Cluster.Node.Key() != "https://us.example/" {
		t.Errorf("peers %v, node %v", c.Cluster.Peers, c.Cluster.Node)
	}
}

// TestOneStringIsAList (faults 5), for every list.
func TestOneStringIsAList(t *testing.T) {
	if _, err := load(minimal + "[cluster]\nconnect = \"https://a/,https://b/\"\n"); err == nil || !strings.Contains(err.Error(), "relay.toml:6: cluster.connect") {
		t.Errorf("a comma splits no text in a file: %v", err)
	}
	c, err := load(minimal + "version = \"moq-lite-05\"\n[cluster]\nconnect = \"https://a/\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Cluster.Peers) != 1 || len(c.Listen.Versions) != 1 || len(c.Listen.TLS.Generate) != 1 || len(c.Auth.Public.Both) != 1 {
		t.Errorf("%+v", c)
	}
}

// TestSecretsAreNotShown (faults 6): markers in every place where a credential may stand, right or wrong.
func TestSecretsAreNotShown(t *testing.T) {
	docs := []string{
		"[cluster]\nconnect = [\"https://a/?jwt=SECRET&cost=x\"]\n",
		"[cluster]\nconnect = [\"SECRET.SECRET.SECRETSECRETSECRETSECRETSECRETSECRETSECRETSECRETSECRETSECRET\"]\n",
		"[cluster]\nconnect = [\"https://SECRET@a/SECRET?jwt=SECRET\", \"https://a/SECRET?jwt=SECRET2\"]\n",
		"[cluster]\nconnect = [{url = \"https://a/?jwt=SECRET\", token = \"SECRET\"}]\n",
		"[cluster]\nconnect = [{url = \"https://a/\", token = \"SEC RET SECRET\"}]\n",
		"[cluster]\nconnect = [{url = \"https://a/\", token = SECRET}]\n",
		"[cluster]\nconnect = [{url = \"https://a/\", token = \"SECRET\\q\"}]\n",
		"[cluster]\nconnect = [{url = \"https://a/\", token = 'SECRET\n'}]\n",
		"[cluster]\nconnect = [{url = \"https://a/\", token = \"SECRET\"} \"SECRET\"]\n",
		"[cluster]\nconnect = [{url = \"https://a/\", token = 12SECRET}]\n",
		"[cluster]\nconnect = [{url = \"https://a/\", token = 12.SECRET}]\n",
		"[cluster]\nconnect = [{url = \"https://a/\", token = +SECRET}]\n",
		"[cluster]\nconnect = [{url = \"https://a/\", token = 1979-SECRET}]\n",
		"[cluster]\nconnect = [{url = \"https://a/\", token = \"SECRET\nSECRET\"}]\n",
		"[cluster]\nnode = \"https://a b/?jwt=SECRET\"\n",
		"[cluster]\ntoken = \"SECRET.SECRET.SECRET\"\n",
	}
	for _, doc := range docs {
		_, err := load(minimal + doc)
		if err == nil {
			t.Errorf("accepted: %s", doc)
		} else if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s\nshows %s", doc, err)
		}
	}
	for _, args := range [][]string{{"--cluster-connect=https://a/?jwt=SECRET&cost=x"}, {"--cluster-token=SECRET"}, {"--cluster-node=https://a/ ?jwt=SECRET"}} {
		if _, err := load(minimal, args...); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: error %v", args, err)
		}
	}
}
