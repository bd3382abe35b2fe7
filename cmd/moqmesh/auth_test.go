package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/remote"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/paths"
)

// command runs the binary's entry and returns what it prints; it must succeed if complaint is empty, else complain so.
func command(t *testing.T, in, complaint string, args ...string) string {
	t.Helper()
	var out, bad strings.Builder
	status := run(args, strings.NewReader(in), &out, &bad)
	if (status == 0) != (complaint == "") || !strings.Contains(bad.String(), complaint) {
		t.Errorf("%q: exit status %d, %q", args, status, bad.String())
	}
	return strings.TrimSpace(out.String())
}

// TestKeysAndTokens: what one command makes, the next one takes.
func TestKeysAndTokens(t *testing.T) {
	dir := t.TempDir()
	private, public := filepath.Join(dir, "key"), filepath.Join(dir, "key.pub")
	if out := command(t, "", "", "auth", "generate", "--algorithm", "EdDSA", "--id", "one", "--out", private, "--public", public, "--root", "demo", "--publish", "alice/**", "--subscribe", "**"); out != "" {
		t.Errorf("a key that goes into a file is printed: %q", out)
	}
	command(t, "", "exists", "auth", "generate", "--algorithm", "EdDSA", "--out", private)
	command(t, "", "symmetric", "auth", "generate", "--public", filepath.Join(dir, "x"))
	command(t, "", "alg", "auth", "generate", "--algorithm", "none")
	command(t, "", "id", "auth", "generate", "--id", "../x")
	command(t, "", "nothing is granted", "auth", "generate", "--root", "demo")
	text := command(t, "", "", "auth", "sign", "--key", private, "--root", "demo/alice", "--publish", "**", "--expires", "1h", "--issued", "2020-01-02T03:04:05Z")
	command(t, "", "grants more than its key may", "auth", "sign", "--key", private, "--root", "demo", "--publish", "bob/**")
	command(t, "", "nothing is granted", "auth", "sign", "--key", private)
	command(t, "", "not for this use", "auth", "sign", "--key", public, "--root", "demo", "--publish", "alice/**")
	command(t, "", "--expires", "auth", "sign", "--key", private, "--root", "demo", "--publish", "alice/**", "--expires", "soon")
	command(t, "", "--root", "auth", "sign", "--key", private, "--root", "a*", "--publish", "alice/**")
	want := `{"root":"demo/alice","put":[""],"exp":`
	for _, key := range []string{private, public} {
		if got := command(t, text+"\n", "", "auth", "verify", "--key", key); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, `,"iat":1577934245}`) {
			t.Errorf("claims %s", got)
		}
	}
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(text[:len(text)-4]), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "", "bad token", "auth", "verify", "--key", public, "--in", file)
	// Keys by id, and on standard output.
	command(t, "", "", "auth", "generate", "--algorithm", "ES256", "--id", "two", "--out-dir", dir)
	if _, err := token.OpenDir(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "two.jwk")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := token.Parse([]byte(command(t, "", "", "auth", "generate"))); err != nil {
		t.Error(err)
	}
}

// TestAuthServe: the server says where it listens, decides, and ends with a signal.
func TestAuthServe(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	command(t, "", "", "auth", "generate", "--out", key)
	text := command(t, "", "", "auth", "sign", "--key", key, "--publish", "**")
	for complaint, args := range map[string][]string{
		"authenticates nobody": {"--listen", "0.0.0.0:0", "--key", key}, "nobody could connect": {}, "needs expires": {"--key", key, "--revalidate", "1s"},
		"no wildcard": {"--public-publish", "a"}, "can't be used together": {"--key", key, "--key-dir", dir}, "no such file": {"--key", key + "x"},
		"only https": {"--jwks", "ftp://x/"}, "limits need": {"--key", key, "--limit-token", "1"},
	} {
		command(t, "", complaint, append([]string{"auth", "serve"}, args...)...)
	}
	for _, listen := range []string{"127.0.0.1:0", "unix:" + filepath.Join(dir, "s")} {
		t.Run(listen, func(t *testing.T) {
			r, w := io.Pipe()
			status := make(chan int)
			go func() {
				status <- run([]string{"auth", "serve", "--listen", listen, "--key", key, "--tier", "gold"}, nil, w, io.Discard)
			}()
			line, err := bufio.NewReader(r).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
			if !ok {
				t.Fatal(line)
			}
			url := "http://" + address
			if strings.HasPrefix(listen, "unix:") {
				url = "unix://" + address
				command(t, "", "in use", "auth", "serve", "--listen", listen, "--key", key)
			}
			c, err := remote.New(remote.Config{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			g, err := c.Authorize(t.Context(), auth.Request{ID: "1", Path: "/", Query: "jwt=" + text})
			if err != nil || g.Tier != "gold" || !g.Publish.Equal(paths.All) {
				t.Errorf("%+v, %v", g, err)
			}
			c.Close()
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			select {
			case got := <-status:
				if got != 0 {
					t.Errorf("exit status %d", got)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("does not end")
			}
		})
	}
}

func TestSessionCommands(t *testing.T) {
	var asked string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.String()
		switch r.URL.Path {
		case "/sessions":
			_, _ = io.WriteString(w, `{"sessions":[]}`)
		case "/sessions/revalidate":
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"ids":["1"]}`)
		}
		if r.URL.Query().Get("role") == "x" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(srv.Close)
	if out := command(t, "", "", "auth", "sessions", "--internal-url", srv.URL+"/", "--path", "demo/**", "--tls-name", "a b"); out != `{"sessions":[]}` || asked != "GET /sessions?path=demo%2F%2A%2A&tls.name=a+b" {
		t.Errorf("asked %q, answered %q", asked, out)
	}
	if out := command(t, "", "", "auth", "revalidate", "--internal-url", srv.URL, "--id", "1"); out != `{"ids":["1"]}` || asked != "POST /sessions/revalidate?id=1" {
		t.Errorf("asked %q, answered %q", asked, out)
	}
	srv.Config.Handler = http.NotFoundHandler()
	command(t, "", "404", "auth", "sessions", "--internal-url", srv.URL)
	srv.Close()
	command(t, "", "refused", "auth", "sessions", "--internal-url", srv.URL)
}
