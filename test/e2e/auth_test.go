//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// moqmesh runs the binary to its end and returns what it prints.
func moqmesh(t *testing.T, args ...string) string {
	t.Helper()
	var complaint strings.Builder
	cmd := exec.CommandContext(t.Context(), binary(t), args...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v, %s", args, err, &complaint)
	}
	return strings.TrimSpace(string(out))
}

// guarded runs a relay whose [auth] is given, and returns its address and its pages.
func guarded(t *testing.T, auth string) (url, pages string) {
	t.Helper()
	port, internal := drive.FreePort(t), drive.FreePort(t)
	file := filepath.Join(t.TempDir(), "relay.toml")
	text := fmt.Sprintf("[listen]\nbind = \"127.0.0.1:%d\"\ntls.generate = [\"localhost\", \"127.0.0.1\"]\n[internal]\nlisten = \"127.0.0.1:%d\"\n[auth]\n%s", port, internal, auth)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	drive.Start(t, "relay", binary(t), "relay", file)
	pages = fmt.Sprintf("http://127.0.0.1:%d", internal)
	drive.Get(t, pages+"/health")
	return fmt.Sprintf("moqt://127.0.0.1:%d", port), pages
}

// TestOneBinary: a relay with keys in its file needs no second process. Tokens are made, used, revoked; the operator
// looks, and makes the relay ask.
func TestOneBinary(t *testing.T) {
	keys := t.TempDir()
	moqmesh(t, "auth", "generate", "--algorithm", "EdDSA", "--id", "crew", "--out", filepath.Join(t.TempDir(), "private"), "--public-dir", keys)
	for _, id := range []string{"alice", "bob"} {
		moqmesh(t, "auth", "generate", "--id", id, "--out-dir", keys)
	}
	sign := func(id string, args ...string) string {
		return moqmesh(t, append([]string{"auth", "sign", "--key", filepath.Join(keys, id+".jwk"), "--root", "room", "--expires", "1h"}, args...)...)
	}
	url, pages := guarded(t, fmt.Sprintf("local.key_dir = %q\nlocal.revalidate = \"1h\"\nlocal.expires = \"2h\"\n", keys))
	pub := drive.Start(t, "pub", binary(t), "pub", url+"/room?jwt="+sign("alice", "--publish", "alice/**"), "alice/cam", "--insecure")
	pub.Expect(t, "published", 10*time.Second)
	watching := drive.Start(t, "sub", binary(t), "sub", url+"/?jwt="+sign("bob", "--subscribe", "**"), "room/alice/cam", "--insecure")
	drive.WaitFor(t, 20*time.Second, "frames", func() bool {
		var page struct {
			Sessions []struct{ Path string }
		}
		if err := json.Unmarshal([]byte(moqmesh(t, "auth", "sessions", "--internal-url", pages)), &page); err != nil {
			t.Fatal(err)
		}
		return len(page.Sessions) == 2
	})
	for name, query := range map[string]string{"without a token": "", "with a broken one": "?jwt=x", "elsewhere": "/other?jwt=" + sign("bob", "--subscribe", "**")} {
		sub := drive.Start(t, "sub "+name, binary(t), "sub", url+"/"+strings.TrimPrefix(query, "/"), "room/alice/cam", "--insecure", "--seconds", "5")
		if code := sub.Wait(t, 20*time.Second); code == 0 {
			t.Errorf("a viewer %s sees something", name)
		}
	}
	// Revoked: the key goes, the operator pushes, the session ends at once.
	if err := os.Remove(filepath.Join(keys, "bob.jwk")); err != nil {
		t.Fatal(err)
	}
	if out := moqmesh(t, "auth", "revalidate", "--internal-url", pages); !strings.Contains(out, `"ids":["`) {
		t.Errorf("asked about %s", out)
	}
	if code := watching.Wait(t, 10*time.Second); code == 0 {
		t.Error("the viewer ends as if all were well")
	}
	if out := moqmesh(t, "auth", "sessions", "--internal-url", pages, "--path", "room/**"); strings.Count(out, `"id"`) != 1 {
		t.Errorf("left: %s", out)
	}
}

// TestAuthServer: the same decisions by a process of its own, behind a socket.
func TestAuthServer(t *testing.T) {
	dir := t.TempDir()
	key, socket := filepath.Join(dir, "key"), filepath.Join(dir, "auth.sock")
	moqmesh(t, "auth", "generate", "--out", key)
	text := moqmesh(t, "auth", "sign", "--key", key, "--publish", "**", "--subscribe", "**")
	server := drive.Start(t, "auth", binary(t), "auth", "serve", "--listen", "unix:"+socket, "--key", key, "--public-subscribe", "free/**")
	drive.WaitFor(t, 10*time.Second, "the auth server", func() bool { return strings.Contains(server.Stdout(), "listening") })
	url, pages := guarded(t, fmt.Sprintf("url = \"unix://%s\"\n", socket))
	pub := drive.Start(t, "pub", binary(t), "pub", url+"/?jwt="+text, "free/cam", "--insecure", "--seconds", "30")
	pub.Expect(t, "published", 10*time.Second)
	sub := drive.Start(t, "sub", binary(t), "sub", url+"/free", "cam", "--insecure", "--seconds", "3")
	if s := sub.Expect(t, "summary", 30*time.Second); s["ok"] != true {
		t.Errorf("summary %v", s)
	}
	if metrics := drive.Get(t, pages+"/metrics"); !strings.Contains(metrics, `moqmesh_auth_answers_total{event="connect",outcome="granted"} 2`) {
		t.Error("the metrics do not tell of two grants")
	}
	drive.WaitFor(t, 10*time.Second, "the end of the viewer at the auth server", func() bool { return strings.Contains(server.Stderr(), "ended") })
	if strings.Contains(server.Stderr(), text[:40]) {
		t.Error("the auth server logs tokens")
	}
}
