package config_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/cluster/peerlist"
	"github.com/moqmesh/moqmesh/config"
	"github.com/moqmesh/moqmesh/lite/message"
)

// value is one setting away from its default, spelled for the file and for flags and variables.
type value struct{ toml, text string }

// away has, for every key, two values away from the default and from each other; false and empty ones included.
var away = map[string][2]value{
	"listen.bind":                 {{`"127.0.0.1:4443"`, "127.0.0.1:4443"}, {`"localhost:1"`, "localhost:1"}},
	"listen.version":              {{`"moq-lite-05"`, "moq-lite-05"}, {`["moq-lite-03", "moq-lite-06"]`, "moq-lite-03,moq-lite-06"}},
	"listen.timeout":              {{`"0s"`, "0s"}, {`"1m"`, "1m"}},
	"listen.tls.cert":             {{`["a.pem"]`, "a.pem"}, {`"b.pem"`, "b.pem"}},
	"listen.tls.key":              {{`["a.key"]`, "a.key"}, {`"b.key"`, "b.key"}},
	"listen.tls.generate":         {{`["a", "b"]`, "a,b"}, {`"c"`, "c"}},
	"connect.bind":                {{`"127.0.0.1:0"`, "127.0.0.1:0"}, {`"[::1]:1"`, "[::1]:1"}},
	"connect.race":                {{`"0s"`, "0s"}, {`"1s"`, "1s"}},
	"connect.resolution_delay":    {{`"0s"`, "0s"}, {`"1s"`, "1s"}},
	"connect.timeout":             {{`"5s"`, "5s"}, {`"1h 30m"`, "1h 30m"}},
	"connect.version":             {{`"moq-lite-05"`, "moq-lite-05"}, {`["moq-lite-06"]`, "moq-lite-06"}},
	"connect.backoff.initial":     {{`"50ms"`, "50ms"}, {`"2s"`, "2s"}},
	"connect.backoff.multiplier":  {{`1`, "1"}, {`1.5`, "1.5"}},
	"connect.backoff.max":         {{`"50ms"`, "50ms"}, {`"1m"`, "1m"}},
	"connect.backoff.timeout":     {{`"0s"`, "0s"}, {`"1h"`, "1h"}},
	"connect.goaway.redirect":     {{`"follow"`, "follow"}, {`"ignore"`, "ignore"}},
	"connect.goaway.handover":     {{`"1s"`, "1s"}, {`"20s"`, "20s"}},
	"connect.tls.root":            {{`["ca.pem"]`, "ca.pem"}, {`["a.pem", "b.pem"]`, "a.pem,b.pem"}},
	"connect.tls.system_roots":    {{`false`, "false"}, {`true`, "true"}},
	"connect.tls.fingerprint":     {{`"` + strings.Repeat("AB:", 31) + `ab"`, strings.Repeat("AB:", 31) + "ab"}, {`["` + strings.Repeat("cd", 32) + `"]`, strings.Repeat("cd", 32)}},
	"connect.tls.cert":            {{`"c.pem"`, "c.pem"}, {`"d.pem"`, "d.pem"}},
	"connect.tls.key":             {{`"c.key"`, "c.key"}, {`"d.key"`, "d.key"}},
	"connect.tls.insecure":        {{`true`, "true"}, {`false`, "false"}},
	"connect.tls.host_name":       {{`"x"`, "x"}, {`""`, ""}},
	"quic.idle_timeout":           {{`"5s"`, "5s"}, {`"30s"`, "30s"}},
	"quic.keep_alive":             {{`"0s"`, "0s"}, {`"4s"`, "4s"}},
	"quic.max_streams":            {{`1`, "1"}, {`20000`, "20000"}},
	"quic.receive_window":         {{`1048576`, "1048576"}, {`"1GiB"`, "1GiB"}},
	"quic.stream_receive_window":  {{`"1MB"`, "1MB"}, {`"2MB"`, "2MB"}},
	"cluster.congestion":          {{`"cubic"`, "cubic"}, {`"system"`, "system"}},
	"cluster.hedge":               {{`"1s"`, "1s"}, {`"0s"`, "0s"}},
	"cluster.id":                  {{`1`, "1"}, {`4611686018427387903`, "4611686018427387903"}},
	"cluster.max_hops":            {{`1`, "1"}, {`31`, "31"}},
	"cluster.connect":             {{`["https://a/", {url = "https://b/", cost = 0}]`, "https://a/,https://b/?cost=0"}, {`[]`, ""}},
	"cluster.connect_api":         {{`"https://api.example/peers"`, "https://api.example/peers"}, {`""`, ""}},
	"cluster.node":                {{`"us.example"`, "us.example"}, {`""`, ""}},
	"cluster.token":               {{`"TOKENFILE"`, "TOKENFILE"}, {`""`, ""}},
	"cluster.lan.enabled":         {{`true`, "true"}, {`false`, "false"}},
	"cluster.lan.secret":          {{`"` + strings.Repeat("ab", 32) + `"`, strings.Repeat("ab", 32)}, {`"` + strings.Repeat("cd", 32) + `"`, strings.Repeat("cd", 32)}},
	"cluster.lan.app":             {{`"rack7"`, "rack7"}, {`"0"`, "0"}},
	"cluster.tier":                {{`"mesh"`, "mesh"}, {`""`, ""}},
	"auth.public":                 {{`["anon/**"]`, "anon/**"}, {`["a/**", "b/**"]`, "a/**,b/**"}},
	"auth.public_publish":         {{`["in/**"]`, "in/**"}, {`[]`, ""}},
	"auth.public_subscribe":       {{`"out/**"`, "out/**"}, {`""`, ""}},
	"listen.tls.root":             {{`["c.pem"]`, "c.pem"}, {`["d.pem", "e.pem"]`, "d.pem,e.pem"}},
	"auth.url":                    {{`"https://a.example/?key=1"`, "https://a.example/?key=1"}, {`"unix:///run/a.sock"`, "unix:///run/a.sock"}},
	"auth.recovery":               {{`false`, "false"}, {`true`, "true"}},
	"auth.stale_window":           {{`"0s"`, "0s"}, {`"1h"`, "1h"}},
	"auth.local.key":              {{`"k.jwk"`, "k.jwk"}, {`""`, ""}},
	"auth.local.key_dir":          {{`"keys"`, "keys"}, {`""`, ""}},
	"auth.local.jwks":             {{`"https://id.example/keys"`, "https://id.example/keys"}, {`""`, ""}},
	"auth.local.public_publish":   {{`["in/**"]`, "in/**"}, {`[]`, ""}},
	"auth.local.public_subscribe": {{`["out/**"]`, "out/**"}, {`[]`, ""}},
	"auth.local.mtls_publish":     {{`["a/**", "b/**"]`, "a/**,b/**"}, {`["c/**"]`, "c/**"}},
	"auth.local.mtls_subscribe":   {{`["a/**", "b/**"]`, "a/**,b/**"}, {`[]`, ""}},
	"auth.local.mtls_peer":        {{`true`, "true"}, {`false`, "false"}},
	"auth.local.tier":             {{`"gold"`, "gold"}, {`""`, ""}},
	"auth.local.revalidate":       {{`"1s"`, "1s"}, {`"1m"`, "1m"}},
	"auth.local.expires":          {{`"1h"`, "1h"}, {`"1m"`, "1m"}},
	"auth.local.limit_token":      {{`1`, "1"}, {`2`, "2"}},
	"auth.local.limit_remote":     {{`1`, "1"}, {`2`, "2"}},
	"web.https.root":              {{`["c.pem"]`, "c.pem"}, {`["d.pem"]`, "d.pem"}},
	"web.http.listen":             {{`"[::]:80"`, "[::]:80"}, {`"[::]:8080"`, "[::]:8080"}},
	"web.https.listen":            {{`"[::]:443"`, "[::]:443"}, {`"[::]:8443"`, "[::]:8443"}},
	"web.https.cert":              {{`["w.pem"]`, "w.pem"}, {`"v.pem"`, "v.pem"}},
	"web.https.key":               {{`["w.key"]`, "w.key"}, {`"v.key"`, "v.key"}},
	"web.ws":                      {{`false`, "false"}, {`true`, "true"}},
	"limits.handshakes":           {{`1`, "1"}, {`2`, "2"}},
	"limits.sessions_per_address": {{`1`, "1"}, {`2`, "2"}},
	"limits.memory":               {{`"50%"`, "50%"}, {`"2GiB"`, "2GiB"}},
	"limits.lateness":             {{`"1s"`, "1s"}, {`"0s"`, "0s"}},
	"limits.announcements":        {{`1`, "1"}, {`2`, "2"}},
	"limits.announce_rate":        {{`1`, "1"}, {`2`, "2"}},
	"limits.announce_streams":     {{`1`, "1"}, {`2`, "2"}},
	"limits.subscriptions":        {{`1`, "1"}, {`2`, "2"}},
	"limits.metadata":             {{`"1MiB"`, "1MiB"}, {`4096`, "4096"}},
	"limits.frames":               {{`"1MiB"`, "1MiB"}, {`"1GiB"`, "1GiB"}},
	"internal.listen":             {{`"127.0.0.1:1"`, "127.0.0.1:1"}, {`"localhost:2"`, "localhost:2"}},
	"stats.enabled":               {{`true`, "true"}, {`false`, "false"}},
	"stats.prefix":                {{`".totals"`, ".totals"}, {`"/a//b/"`, "a/b"}},
	"stats.interval":              {{`5`, "5"}, {`86400`, "86400"}},
	"stats.node":                  {{`"us"`, "us"}, {`""`, ""}},
	"stats.depth":                 {{`2`, "2"}, {`32`, "32"}},
	"stats.linger":                {{`"1m"`, "1m"}, {`"1h"`, "1h"}},
	"cache.capacity":              {{`"75%"`, "75%"}, {`"512MB"`, "512MB"}},
	"cache.headroom":              {{`"1GiB"`, "1GiB"}, {`1`, "1"}},
	"cache.duration":              {{`"1m"`, "1m"}, {`"30s"`, "30s"}},
	"log.level":                   {{`"trace"`, "trace"}, {`"error"`, "error"}},
	"drain_timeout":               {{`"0s"`, "0s"}, {`"1m"`, "1m"}},
}

// partners are settings that others need beside them.
var partners = map[string]string{
	"listen.tls.cert": "listen.tls.key", "listen.tls.key": "listen.tls.cert",
	"connect.tls.cert": "connect.tls.key", "connect.tls.key": "connect.tls.cert",
	"web.https.cert": "web.https.key", "web.https.key": "web.https.cert",
}

// extras are lines without which a setting is refused.
var extras = map[string]string{
	"web.https.listen":   "web.https.cert = \"a\"\nweb.https.key = \"a\"\n",
	"cluster.lan.secret": "cluster.lan.enabled = true\n",
	"cluster.lan.app":    "cluster.lan.enabled = true\n",
}

// decider is what lets people in beside a setting, since only one can.
func decider(name string) map[string]string {
	switch {
	case strings.HasPrefix(name, "auth.local."):
		return map[string]string{
			"auth.local.mtls_publish": `"m/**"`, "auth.local.revalidate": `"9s"`, "auth.local.expires": `"9s"`,
		}
	case strings.HasPrefix(name, "auth.public"), !strings.HasPrefix(name, "auth.") && !strings.HasSuffix(name, "s.root"), name == "connect.tls.root":
		return map[string]string{"auth.public": `"**"`}
	}
	return map[string]string{"auth.url": `"https://auth.example/"`}
}

// document writes settings as a file, always with what no relay starts without.
func document(t *testing.T, decider, settings map[string]string) string {
	t.Helper()
	all := map[string]string{"listen.tls.generate": `"localhost"`, "connect.tls.insecure": "true"}
	maps.Copy(all, decider)
	maps.Copy(all, settings)
	var b strings.Builder
	for name, v := range all {
		fmt.Fprintf(&b, "%s = %s\n", name, withTokenFile(t, v))
	}
	return b.String()
}

// withTokenFile puts the name of a real file in place of TOKENFILE.
func withTokenFile(t *testing.T, text string) string {
	t.Helper()
	if !strings.Contains(text, "TOKENFILE") {
		return text
	}
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("t"), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text, "TOKENFILE", path)
}

// plain prepares configurations for comparison.
var plain = cmp.Options{
	cmp.Comparer(func(a, b cluster.Entry) bool { return a.Key() == b.Key() && a.Same(b) }),
	cmp.Comparer(func(a, b cluster.Node) bool { return a == b }),
	cmp.Comparer(func(a, b peerlist.Source) bool { return a.String() == b.String() }),
	cmp.Comparer(func(a, b *cluster.TokenFile) bool { return (a == nil) == (b == nil) }),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Warnings" }, cmp.Ignore()),
}

func mustLoad(t *testing.T, doc string, env []string, args ...string) *config.Config {
	t.Helper()
	c, err := loadEnv(doc, env, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	return c
}

// with adds the partner of a setting, in the same of its two values.
func with(name string, which int) map[string]string {
	out := map[string]string{name: away[name][which].toml}
	if p, ok := partners[name]; ok {
		out[p] = away[p][which].toml
	}
	return out
}

// TestEveryKeySurvivesInEveryLayer (faults 5, "Defaults overwrite the file"): a value away from the default, false and
// empty included, has an effect from the file, from the environment and from flags, all three the same; and flags
// count before the environment, the environment before the file.
func TestEveryKeySurvivesInEveryLayer(t *testing.T) {
	for _, k := range config.Keys() {
		t.Run(k.Name, func(t *testing.T) {
			v, ok := away[k.Name]
			if !ok {
				t.Fatal("the table of this test lacks the key")
			}
			if p := partners[k.Name]; p != "" {
				t.Skip("tested with its partner below")
			}
			file := func(which int) string { return document(t, decider(k.Name), with(k.Name, which)) + extras[k.Name] }
			base := document(t, decider(k.Name), nil) + extras[k.Name]
			unset, first, second := mustLoad(t, base, nil), mustLoad(t, file(0), nil), mustLoad(t, file(1), nil)
			if cmp.Equal(first, second, plain) {
				t.Error("the two values make no difference")
			}
			if cmp.Equal(unset, first, plain) && cmp.Equal(unset, second, plain) {
				t.Error("the values are not away from the default")
			}
			env := func(which int) []string {
				return []string{k.Env + "=" + withTokenFile(t, v[which].text)}
			}
			flag := func(which int) string {
				return "--" + k.Flag + "=" + withTokenFile(t, v[which].text)
			}
			layers := map[string]struct{ want, got *config.Config }{
				"environment":              {first, mustLoad(t, base, env(0))},
				"flag":                     {first, mustLoad(t, base, nil, flag(0))},
				"environment before file":  {first, mustLoad(t, file(1), env(0))},
				"and the other way round":  {second, mustLoad(t, file(0), env(1))},
				"flag before environment":  {second, mustLoad(t, file(0), env(0), flag(1))},
				"and the other way round2": {first, mustLoad(t, file(1), env(1), flag(0))},
			}
			for name, l := range layers {
				if diff := cmp.Diff(l.want, l.got, plain); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
	for _, pair := range [][2]string{{"listen.tls.cert", "listen.tls.key"}, {"connect.tls.cert", "connect.tls.key"}, {"web.https.cert", "web.https.key"}} {
		t.Run(pair[0], func(t *testing.T) {
			var env, flags []string
			for _, k := range config.Keys() {
				if k.Name == pair[0] || k.Name == pair[1] {
					env = append(env, k.Env+"="+away[k.Name][0].text)
					flags = append(flags, "--"+k.Flag+"="+away[k.Name][0].text)
				}
			}
			first, second := with(pair[0], 0), with(pair[0], 1)
			want := mustLoad(t, document(t, decider(pair[0]), first), nil)
			if cmp.Equal(want, mustLoad(t, document(t, decider(pair[0]), second), nil), plain) || cmp.Equal(want, mustLoad(t, document(t, decider(pair[0]), nil), nil), plain) {
				t.Error("the values make no difference")
			}
			for name, got := range map[string]*config.Config{
				"environment": mustLoad(t, document(t, decider(pair[0]), second), env),
				"flags":       mustLoad(t, document(t, decider(pair[0]), second), nil, flags...),
			} {
				if diff := cmp.Diff(want, got, plain); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

// TestEveryFieldHasAKey: a file with every key away from its default changes every field of Config, so no field is
// forgotten by the parser.
func TestEveryFieldHasAKey(t *testing.T) {
	all := make(map[string]string)
	for name, v := range away {
		if !strings.HasPrefix(name, "auth.public") && !strings.HasPrefix(name, "auth.local.") { // auth.url decides
			all[name] = v[0].toml
		}
	}
	// These two have a false or empty value that is the one away from the default, or a zero one that says nothing.
	all["connect.tls.insecure"], all["connect.tls.system_roots"], all["listen.timeout"], all["drain_timeout"] = "true", "true", `"1s"`, `"1s"`
	all["connect.race"], all["connect.resolution_delay"], all["quic.keep_alive"], all["connect.backoff.timeout"] = `"1s"`, `"1s"`, `"1s"`, `"1s"`
	all["cluster.connect"], all["cluster.node"] = `["https://a/"]`, `"us.example"`
	c := mustLoad(t, document(t, nil, all), nil)
	d := mustLoad(t, "auth.public = \"x/**\"\nlisten.tls.generate = \"x\"\n", nil)
	eachField(reflect.ValueOf(*c), reflect.ValueOf(*d), "", func(path string, got, def reflect.Value) {
		switch path {
		case ".Warnings", ".Connect.TLS.SystemRoots", ".Auth.Recovery", ".Web.WebSocket": // true by default and with a value in the file
			return
		case ".Auth.Public", ".Auth.Local": // see TestEveryRuleHasAKey
			return
		}
		if got.IsZero() || reflect.DeepEqual(got.Interface(), def.Interface()) {
			t.Errorf("%s has its default %v although every key is set", path, got)
		}
	})
}

// TestEveryRuleHasAKey does the same for the rules of the relay itself, of which the keys can only come from one place.
func TestEveryRuleHasAKey(t *testing.T) {
	all := make(map[string]string)
	for name, v := range away {
		if strings.HasPrefix(name, "auth.local.") && name != "auth.local.key_dir" && name != "auth.local.jwks" {
			all[name] = v[0].toml
		}
	}
	local := mustLoad(t, document(t, nil, all), nil).Auth.Local
	rules := reflect.ValueOf(local.Rules)
	for i := range rules.NumField() {
		if name := rules.Type().Field(i).Name; name != "Keys" && name != "Logger" && rules.Field(i).IsZero() {
			t.Errorf("%s is not set although every key is", name)
		}
	}
	if local.Key != "k.jwk" {
		t.Errorf("key %q", local.Key)
	}
}

// eachField visits the fields of the structs of this package, down to the values.
func eachField(a, b reflect.Value, path string, visit func(path string, a, b reflect.Value)) {
	ours := reflect.TypeFor[config.Config]().PkgPath()
	if a.Kind() != reflect.Struct || a.Type().PkgPath() != ours || a.Type() == reflect.TypeFor[config.Capacity]() {
		visit(path, a, b)
		return
	}
	for i := range a.NumField() {
		eachField(a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name, visit)
	}
}

// TestDefaults holds what a relay does without settings to the page of keys.
func TestDefaults(t *testing.T) {
	c := mustLoad(t, minimal, nil)
	versions := func(list []message.Version) (names []string) {
		for _, v := range list {
			names = append(names, v.String())
		}
		return names
	}
	got := fmt.Sprint(c.Listen.Bind, versions(c.Listen.Versions), c.Listen.Timeout, c.Connect.Bind, c.Connect.Race, c.Connect.ResolutionDelay, c.Connect.Timeout,
		versions(c.Connect.Versions), c.Connect.Backoff, c.Connect.Redirect, c.Connect.HandoverDuration, c.Connect.TLS.SystemRoots, c.Connect.TLS.Insecure,
		c.QUIC, c.Cluster.ID, c.Cluster.MaxHops, c.Web, c.Internal, c.Cache, c.Log.Level, c.DrainTimeout)
	all := "[moq-lite-06 moq-lite-05 moq-lite-04 moq-lite-03 moq-lite-02 moq-lite-01]"
	want := "[::]:443 " + all + " 10s [::]:0 250ms 50ms 30s " + all + " {1s 2 5s 10s} same-host 10s true false " +
		"{10s 3s 10000 67108864 0} 0 32 {  [] [] true} {} {50% 0 30s 0s} INFO 10s"
	if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestDevelopment(t *testing.T) {
	c := config.Development()
	got := []string{c.Listen.Bind, c.Web.HTTPListen, c.Web.HTTPSListen, c.Internal.Listen, strings.Join(c.Auth.Public.Both, " "), strings.Join(c.Listen.TLS.Generate, " ")}
	want := []string{"localhost:4443", "localhost:4443", "", "127.0.0.1:4444", "**", "localhost 127.0.0.1 ::1"}
	if diff := cmp.Diff(want, got); diff != "" || len(c.Warnings) != 0 {
		t.Error(diff, c.Warnings)
	}
}

// TestCacheDuration: one key, two limits (config.md 2).
func TestCacheDuration(t *testing.T) {
	for doc, want := range map[string]string{"": "30s 0s", "[cache]\nduration = \"30s\"\n": "30s 30s", "[cache]\nduration = \"5m\"\n": "5m0s 5m0s"} {
		c := mustLoad(t, minimal+doc, nil)
		if got := fmt.Sprint(c.Cache.Idle, " ", c.Cache.MaxAge); got != want {
			t.Errorf("%q: %s, want %s", doc, got, want)
		}
	}
}

// TestSystemRoots: true if and only if there are no other roots, unless it is set.
func TestSystemRoots(t *testing.T) {
	for doc, want := range map[string]bool{
		"": true, "root = \"a\"": false, "root = \"a\"\nsystem_roots = true": true, "root = []": true,
		"fingerprint = \"" + strings.Repeat("ab", 32) + "\"\nsystem_roots = false": false,
	} {
		if got := mustLoad(t, minimal+"[connect.tls]\n"+doc, nil).Connect.TLS.SystemRoots; got != want {
			t.Errorf("%q: %v", doc, got)
		}
	}
}

func TestLogVariableOverridesAll(t *testing.T) {
	c := mustLoad(t, minimal+"[log]\nlevel = \"warn\"\n", []string{"MOQMESH_LOG=debug", "MOQ_LOG_LEVEL=error"}, "--log-level=error")
	if c.Log.Level.String() != "DEBUG" {
		t.Errorf("level %v", c.Log.Level)
	}
	if _, err := loadEnv(minimal, []string{"MOQMESH_LOG=loud"}); err == nil || !strings.Contains(err.Error(), "MOQMESH_LOG: log.level") {
		t.Errorf("error %v", err)
	}
	mustLoad(t, minimal, []string{"MOQMESH_LOG="})
}

// TestFlags: how a command line is read.
func TestFlags(t *testing.T) {
	load := func(args ...string) (*config.Config, error) {
		return config.Load(config.Input{Args: append([]string{"--auth-public=**", "--listen-tls-generate", "localhost"}, args...)})
	}
	good := map[string]struct {
		args []string
		want func(*config.Config) any
		is   any
	}{
		"with equals":        {[]string{"--listen=[::]:1"}, func(c *config.Config) any { return c.Listen.Bind }, "[::]:1"},
		"apart":              {[]string{"--listen", "[::]:1"}, func(c *config.Config) any { return c.Listen.Bind }, "[::]:1"},
		"value with equals":  {[]string{"--cluster-connect=https://a/?cost=7"}, func(c *config.Config) any { p, _ := c.Cluster.Peers[0].Price(); return p }, uint64(7)},
		"switch":             {[]string{"--connect-tls-insecure"}, func(c *config.Config) any { return c.Connect.TLS.Insecure }, true},
		"switch, true":       {[]string{"--connect-tls-insecure=true"}, func(c *config.Config) any { return c.Connect.TLS.Insecure }, true},
		"switch, false":      {[]string{"--connect-tls-insecure=false"}, func(c *config.Config) any { return c.Connect.TLS.Insecure }, false},
		"switch, then flag":  {[]string{"--connect-tls-insecure", "--listen", "[::]:1"}, func(c *config.Config) any { return c.Listen.Bind }, "[::]:1"},
		"commas":             {[]string{"--cluster-connect=https://a/, https://b/,"}, func(c *config.Config) any { return len(c.Cluster.Peers) }, 2},
		"repeated list":      {[]string{"--cluster-connect=https://a/", "--cluster-connect", "https://b/"}, func(c *config.Config) any { return len(c.Cluster.Peers) }, 2},
		"short backoff":      {[]string{"--backoff-initial=2s"}, func(c *config.Config) any { return c.Connect.Backoff.Initial.String() }, "2s"},
		"short goaway":       {[]string{"--goaway-redirect=ignore"}, func(c *config.Config) any { return c.Connect.Redirect }, cluster.RedirectIgnore},
		"inert switch":       {[]string{"--connect-once", "--listen=[::]:1"}, func(c *config.Config) any { return len(c.Warnings) }, 1},
		"inert with a value": {[]string{"--connect", "https://a/"}, func(c *config.Config) any { return len(c.Warnings) }, 1},
	}
	for name, tt := range good {
		t.Run(name, func(t *testing.T) {
			c, err := load(tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.want(c); got != tt.is {
				t.Errorf("got %v, want %v", got, tt.is)
			}
		})
	}
	bad := map[string]struct {
		args []string
		want string
	}{
		"unknown":              {[]string{"--clutser-id=1"}, "--clutser-id: unknown flag; -h lists the flags"},
		"unknown, lists known": {[]string{"--cluster-di=1"}, "--cluster-di: unknown flag; known: --cluster-id, --cluster-max-hops, --cluster-connect"},
		"one dash":             {[]string{"-listen=x"}, "-listen=x: unknown flag; flags start with two dashes"},
		"no value":             {[]string{"--listen"}, "--listen: listen.bind: a value is missing"},
		"no value, then flag":  {[]string{"--listen", "--log-level=info"}, "--listen: listen.bind: a value is missing"},
		"negative value":       {[]string{"--cluster-id", "-1"}, `--cluster-id: cluster.id: "-1" is not a whole number`},
		"empty value":          {[]string{"--listen="}, `--listen: listen.bind: "" is not an address`},
		"switch, no bool":      {[]string{"--connect-tls-insecure=yes"}, `--connect-tls-insecure: connect.tls.insecure: "yes" is not true or false`},
		"twice":                {[]string{"--listen=[::]:1", "--listen=[::]:1"}, "--listen: listen.bind: given more than once"},
		"two files":            {[]string{"a.toml", "b.toml"}, "more than one configuration file: a.toml, b.toml"},
		"files after --":       {[]string{"--", "a.toml", "--b"}, "more than one configuration file: a.toml, --b"},
		"switch takes no file": {[]string{"--connect-tls-insecure", "none.toml"}, "none.toml: cannot be read"},
		"not supported":        {[]string{"--listen-tcp-bind", "x"}, "--listen-tcp-bind: is not supported yet"},
		"not supported switch": {[]string{"--iroh-enabled", "--listen=[::]:1"}, "--iroh-enabled: is not supported"},
		"not supported below":  {[]string{"--listen-unix-bind=k"}, "--listen-unix-bind: is not supported yet"},
		"renamed":              {[]string{"--server-bind=[::]:1"}, "--server-bind: renamed to [listen]"},
	}
	for name, tt := range bad {
		t.Run(name, func(t *testing.T) {
			if c, err := load(tt.args...); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, error %v, want %s", c, err, tt.want)
			}
		})
	}
	for _, args := range [][]string{{"-h"}, {"--help"}, {"--listen=bad", "x.toml", "--help"}} {
		if _, err := load(args...); !errors.Is(err, config.ErrHelp) {
			t.Errorf("%v: error %v", args, err)
		}
	}
}

// TestNames holds flags and variables to the page of keys where it spells them out.
func TestNames(t *testing.T) {
	want := map[string][2]string{
		"listen.bind":             {"listen", "MOQ_LISTEN"},
		"listen.version":          {"listen-version", "MOQ_LISTEN_VERSION"},
		"listen.timeout":          {"listen-timeout", "MOQ_LISTEN_TIMEOUT"},
		"listen.tls.cert":         {"listen-tls-cert", "MOQ_LISTEN_TLS_CERT"},
		"listen.tls.generate":     {"listen-tls-generate", "MOQ_LISTEN_TLS_GENERATE"},
		"connect.bind":            {"connect-bind", "MOQ_CONNECT_BIND"},
		"connect.race":            {"connect-race", "MOQ_CONNECT_RACE"},
		"connect.tls.root":        {"connect-tls-root", "MOQ_CONNECT_TLS_ROOT"},
		"connect.backoff.initial": {"backoff-initial", "MOQ_BACKOFF_INITIAL"},
		"connect.backoff.timeout": {"backoff-timeout", "MOQ_BACKOFF_TIMEOUT"},
		"connect.goaway.redirect": {"goaway-redirect", "MOQ_CONNECT_GOAWAY_REDIRECT"},
		"connect.goaway.handover": {"goaway-handover", "MOQ_CONNECT_GOAWAY_HANDOVER"},
		"quic.idle_timeout":       {"quic-idle-timeout", "MOQ_QUIC_IDLE_TIMEOUT"},
		"cluster.max_hops":        {"cluster-max-hops", "MOQ_CLUSTER_MAX_HOPS"},
		"cluster.connect":         {"cluster-connect", "MOQ_CLUSTER_CONNECT"},
		"auth.public_publish":     {"auth-public-publish", "MOQ_AUTH_PUBLIC_PUBLISH"},
		"web.http.listen":         {"web-http-listen", "MOQ_WEB_HTTP_LISTEN"},
		"web.https.cert":          {"web-https-cert", "MOQ_WEB_HTTPS_CERT"},
		"web.ws":                  {"web-ws", "MOQ_WEB_WS"},
		"internal.listen":         {"internal-listen", "MOQ_INTERNAL_LISTEN"},
		"cache.duration":          {"cache-duration", "MOQ_CACHE_DURATION"},
		"log.level":               {"log-level", "MOQ_LOG_LEVEL"},
		"drain_timeout":           {"drain-timeout", "MOQ_DRAIN_TIMEOUT"},
	}
	flags, envs := map[string]bool{}, map[string]bool{}
	for _, k := range config.Keys() {
		if w, ok := want[k.Name]; ok && w != [2]string{k.Flag, k.Env} {
			t.Errorf("%s has --%s and %s", k.Name, k.Flag, k.Env)
		}
		delete(want, k.Name)
		if flags[k.Flag] || envs[k.Env] {
			t.Errorf("%s shares --%s or %s", k.Name, k.Flag, k.Env)
		}
		flags[k.Flag], envs[k.Env] = true, true
	}
	if len(want) != 0 {
		t.Errorf("missing keys: %v", want)
	}
}

// TestOutsideSettings: what other relays know is warned of or refused by name in every layer, and accepted where it
// asks for what happens anyway.
func TestOutsideSettings(t *testing.T) {
	inert, unsupported := config.OutsideNames()
	layers := func(o config.Outside, value string) map[string]func() (*config.Config, error) {
		name := o.Name
		if strings.HasSuffix(name, ".") {
			name += "x"
		}
		return map[string]func() (*config.Config, error){
			"relay.toml:1: " + name: func() (*config.Config, error) { return load(fmt.Sprintf("%s = %q\n", name, value) + minimal) },
			config.EnvName(name):    func() (*config.Config, error) { return loadEnv(minimal, []string{config.EnvName(name) + "=" + value}) },
			"--" + config.FlagName(name): func() (*config.Config, error) {
				return load(minimal, "--"+config.FlagName(name)+"="+value)
			},
		}
	}
	for _, o := range inert {
		for place, load := range layers(o, "1h") {
			if c, err := load(); err != nil || len(c.Warnings) != 1 || !strings.HasPrefix(c.Warnings[0], place+": ") || !strings.Contains(c.Warnings[0], "accepted without effect") {
				t.Errorf("%s: %v, %v", place, c, err)
			}
		}
	}
	for _, o := range unsupported {
		for place, load := range layers(o, "1h") {
			if _, err := load(); err == nil || !strings.HasPrefix(err.Error(), place+": is not supported") {
				t.Errorf("%s: error %v", place, err)
			}
		}
	}
	for _, o := range append(inert, unsupported...) {
		if o.Off == "" {
			continue
		}
		for place, load := range layers(o, o.Off) {
			if c, err := load(); err != nil || len(c.Warnings) != 0 {
				t.Errorf("%s = %s: %v, %v", place, o.Off, c, err)
			}
		}
	}
	if _, err := load("iroh.enabled = false\n" + minimal); err != nil {
		t.Error(err)
	}
	if _, err := load("iroh.enabled = true\n" + minimal); err == nil {
		t.Error("another transport is accepted")
	}
}

// TestRenamed: old names are refused with a hint, also what lies below them, in every layer.
func TestRenamed(t *testing.T) {
	for _, name := range config.Renamed() {
		for _, full := range []string{name, name + ".some.thing"} {
			places := map[string]error{}
			_, places["relay.toml:1: "+full+": "] = load(full + " = 1\n" + minimal)
			_, places[config.EnvName(full)+": "] = loadEnv(minimal, []string{config.EnvName(full) + "=1"})
			_, places["--"+config.FlagName(full)+": "] = load(minimal, "--"+config.FlagName(full)+"=1")
			for place, err := range places {
				if err == nil {
					t.Errorf("%s is accepted", place)
					continue
				}
				rest, ok := strings.CutPrefix(err.Error(), place)
				if !ok { // in the file the old name itself is named, or the first part below it
					_, rest, ok = strings.Cut(err.Error(), "relay.toml:1: "+name)
					_, rest, _ = strings.Cut(rest, ": ")
				}
				if !ok || !strings.HasPrefix(rest, "renamed to") && !strings.HasPrefix(rest, "removed: ") && !strings.HasPrefix(rest, "moved to") {
					t.Errorf("%s: error %v", place, err)
				}
			}
		}
	}
	for name, hint := range map[string]string{"server.quic": "renamed to [quic]", "server.bind": "renamed to [listen]", "client.quic.keep_alive": "renamed to [quic]", "auth.key": "[auth.local]", "auth.key_dir": "key_dir"} {
		if _, err := loadEnv(minimal, []string{config.EnvName(name) + "=1"}); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
