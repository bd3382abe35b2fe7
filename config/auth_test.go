package config_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/remote"
	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/config"
	"github.com/moqmesh/moqmesh/paths"
	"github.com/moqmesh/moqmesh/relay"
)

func relayConfig(t *testing.T, doc string) (relay.Config, error) {
	t.Helper()
	return mustLoad(t, doc, nil).Relay(slog.New(slog.DiscardHandler))
}

// TestDeciders: what the settings say becomes the authorizer of the relay.
func TestDeciders(t *testing.T) {
	dir := t.TempDir()
	k, err := token.Generate("ES256", "")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "key.jwk")
	if err := k.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	window := 5 * time.Minute
	tests := map[string]struct {
		doc   string
		want  auth.Authorizer
		lease relay.Lease
	}{
		"public": {minimal, new(auth.Public), relay.Lease{}},
		"server": {"listen.tls.generate = \"x\"\n[auth]\nurl = \"https://a/\"\nrecovery = false\nstale_window = \"5m\"\n", new(remote.Client), relay.Lease{NoRecovery: true, StaleWindow: &window}},
		"key":    {decided("key = '" + file + "'\n"), new(serve.Rules), relay.Lease{}},
		"dir":    {decided("key_dir = '" + dir + "'\n"), new(serve.Rules), relay.Lease{}},
		"jwks":   {decided("jwks = \"https://a/\"\n"), new(serve.Rules), relay.Lease{}},
	}
	for name, tt := range tests {
		c, err := relayConfig(t, tt.doc)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if fmt.Sprintf("%T", c.Auth) != fmt.Sprintf("%T", tt.want) {
			t.Errorf("%s: %T decides", name, c.Auth)
		}
		if c.Lease.NoRecovery != tt.lease.NoRecovery || (c.Lease.StaleWindow == nil) != (tt.lease.StaleWindow == nil) ||
			c.Lease.StaleWindow != nil && *c.Lease.StaleWindow != window {
			t.Errorf("%s: %+v", name, c.Lease)
		}
	}
	c, err := relayConfig(t, decided("key = '"+file+"'\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := k.Sign(token.Claims{Root: "demo", Subscribe: paths.All})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Auth.Authorize(t.Context(), auth.Request{Path: "/demo", Query: "jwt=" + text}); err != nil {
		t.Error(err)
	}
}

// TestUnusableFiles: keys and authorities that cannot be used refuse the start (faults 6, "Empty rules").
func TestUnusableFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tt := range map[string]struct{ doc, want string }{
		"empty key":    {decided("key = '" + write("empty", "") + "'\n"), "auth.local: "},
		"no keys":      {decided("key = '" + write("none", `{"keys":[]}`) + "'\n"), "auth.local: "},
		"secret in it": {decided("key = '" + write("short", `{"alg":"HS256","kty":"oct","k":"S3CRET"}`) + "'\n"), "auth.local: "},
		"missing key":  {decided("key = '" + filepath.Join(dir, "missing") + "'\n"), "auth.local: "},
		"a directory":  {decided("key = '" + dir + "'\n"), "auth.local: "},
		"a file":       {decided("key_dir = '" + write("file", "") + "'\n"), "auth.local: "},
		"no CA":        {"listen.tls.generate = \"x\"\nauth.local.mtls_publish = \"**\"\nlisten.tls.root = '" + write("ca", "S3CRET") + "'\n", "listen.tls.root: "},
		"missing CA":   {decided("mtls_publish = \"**\"\n[web]\nhttps.root = '" + filepath.Join(dir, "missing") + "'\n"), "web.https.root: "},
	} {
		if _, err := relayConfig(t, tt.doc); err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestAuthWarnings(t *testing.T) {
	const public, local = "listen.tls.generate = \"x\"\nauth.public = \"**\"\n", "listen.tls.generate = \"x\"\nauth.local.mtls_publish = \"**\"\n"
	for doc, want := range map[string]string{
		public + "auth.recovery = true\n":       "",
		public + "auth.recovery = false\n":      "auth.recovery: without effect on public rules",
		public + "auth.stale_window = \"1s\"\n": "auth.stale_window: without effect on public rules",
		local:                                   "auth.local: rules for client certificates are without effect",
		local + "web.https.root = \"a\"\n":      "web.https.root: without effect, since web.https.listen is unset",
		local + "listen.tls.root = \"a\"\n":     "",
	} {
		c := mustLoad(t, doc, nil)
		if got := strings.Join(c.Warnings, "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", doc, got)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	c := mustLoad(t, "listen.tls.generate = \"x\"\nauth.url = \"https://a/?key=S3CRET\"\n", nil)
	d := mustLoad(t, decided("jwks = \"https://a/?key=S3CRET\"\n"), nil)
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "url", c.Auth.URL, "jwks", d.Auth.Local.JWKS)
	fmt.Fprintf(&out, "%v %+v %#v %s", c.Auth, c.Auth, c.Auth, c.Auth.URL)
	fmt.Fprintf(&out, "%v %+v %#v", *d.Auth.Local, *d.Auth.Local, *d.Auth.Local)
	if strings.Contains(out.String(), "S3CRET") || !strings.Contains(out.String(), "redacted") {
		t.Error(out.String())
	}
	if config.Secret("").String() != "" {
		t.Error("nothing is redacted")
	}
}
