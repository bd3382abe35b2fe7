//go:build interop

package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/internal/drive"
)

// jsToken runs the script around @moq/token.
func jsToken(t *testing.T, key, text string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join(drive.Env(t, "MOQMESH_JS"), "token.mjs")}, args...)...)
	cmd.Env = append(os.Environ(), "KEY="+key, "TOKEN="+text)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v, %s", args, err, err.(*exec.ExitError).Stderr) //nolint:errorlint // Output wraps nothing
	}
	return strings.TrimSpace(string(out))
}

// ours runs moqmesh auth.
func ours(t *testing.T, in string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), drive.Env(t, "MOQMESH_BIN"), append([]string{"auth"}, args...)...)
	cmd.Stdin = strings.NewReader(in)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v, %s", args, err, &complaint)
	}
	return strings.TrimSpace(string(out))
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// claims reads what either side prints, apart from the time of issue.
func claims(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	delete(m, "iat")
	return m
}

// TestTokens: keys and tokens of either side are good at the other, for every algorithm.
func TestTokens(t *testing.T) {
	want := map[string]any{"root": "demo", "put": []any{"alice"}, "get": []any{""}, "exp": 4102444800.0}
	for _, alg := range token.Algorithms() {
		t.Run(alg, func(t *testing.T) {
			t.Run("theirs", func(t *testing.T) {
				key := jsToken(t, "", "", "generate", alg, "their-kid_1")
				text := jsToken(t, key, "", "sign", `{"root":"demo","put":["alice"],"get":"","exp":4102444800}`)
				keys := []string{key}
				if !strings.HasPrefix(alg, "HS") {
					keys = append(keys, jsToken(t, key, "", "public"))
				}
				for _, k := range keys {
					if diff := cmp.Diff(want, claims(t, ours(t, text, "verify", "--key", file(t, k)))); diff != "" {
						t.Error(diff)
					}
				}
				// Their key signs here, for them.
				again := ours(t, "", "sign", "--key", file(t, key), "--root", "demo", "--publish", "alice/**", "--subscribe", "**", "--expires", "4102444800")
				if diff := cmp.Diff(want, claims(t, jsToken(t, key, again, "verify", "demo"))); diff != "" {
					t.Error(diff)
				}
			})
			t.Run("ours", func(t *testing.T) {
				dir := t.TempDir()
				args := []string{"generate", "--algorithm", alg, "--out", filepath.Join(dir, "key")}
				if !strings.HasPrefix(alg, "HS") {
					args = append(args, "--public", filepath.Join(dir, "public"))
				}
				ours(t, "", args...)
				text := ours(t, "", "sign", "--key", filepath.Join(dir, "key"), "--root", "demo", "--publish", "alice/**", "--subscribe", "**", "--expires", "4102444800")
				names, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range names {
					key, err := os.ReadFile(filepath.Join(dir, name.Name()))
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, claims(t, jsToken(t, string(key), text, "verify", "demo"))); diff != "" {
						t.Errorf("%s: %s", name.Name(), diff)
					}
				}
				key, err := os.ReadFile(filepath.Join(dir, "key"))
				if err != nil {
					t.Fatal(err)
				}
				again := jsToken(t, string(key), "", "sign", `{"root":"demo","put":["alice"],"get":[""],"exp":4102444800}`)
				if diff := cmp.Diff(want, claims(t, ours(t, again, "verify", "--key", filepath.Join(dir, "key")))); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
