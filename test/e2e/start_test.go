//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

func binary(t *testing.T) string { t.Helper(); return drive.Env(t, "MOQMESH_BIN") }

// TestDevelopmentRelay starts the relay without arguments and does what its three lines say.
func TestDevelopmentRelay(t *testing.T) {
	dev := drive.Start(t, "dev", binary(t))
	line := func(label string) []string {
		var words []string
		drive.WaitFor(t, 10*time.Second, label+" line", func() bool {
			for l := range strings.Lines(dev.Stdout()) {
				if rest, ok := strings.CutPrefix(l, label+":"); ok {
					words = strings.Fields(rest)
					return true
				}
			}
			return false
		})
		return words
	}
	publish, watch, look := line("publish"), line("watch"), line("look")
	if publish[0] != "moqmesh" || watch[0] != "moqmesh" {
		t.Fatalf("the lines name no command: %v, %v", publish, watch)
	}
	drive.Start(t, "pub", binary(t), append(publish[1:], "--seconds", "20")...)
	sub := drive.Start(t, "sub", binary(t), append(watch[1:], "--seconds", "3")...)
	summary := sub.Expect(t, "summary", 20*time.Second)
	if summary["ok"] != true || summary.Number("frames") < 60 {
		t.Errorf("summary %v", summary)
	}
	if code := sub.Wait(t, 5*time.Second); code != 0 {
		t.Errorf("sub exits with %d", code)
	}
	page := look[len(look)-1]
	if !regexp.MustCompile(`^http://(localhost|127\.0\.0\.1):\d+/`).MatchString(page) {
		t.Fatalf("look line %v", look)
	}
	base := page[:strings.LastIndexByte(page, '/')]
	if health := drive.Get(t, base+"/health"); health != "ok\n" {
		t.Errorf("health %q", health)
	}
	if metrics := drive.Get(t, base+"/metrics"); !strings.Contains(metrics, "moq_relay_sessions_opened_total") {
		t.Error("metrics lack the sessions")
	}
	if hash := drive.Get(t, "http://localhost:4443/certificate.sha256"); !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(hash) {
		t.Errorf("certificate hash %q", hash)
	}
	dev.Signal(t, syscall.SIGTERM)
	time.Sleep(100 * time.Millisecond) // else the kernel makes one signal of both
	dev.Signal(t, syscall.SIGTERM)
	if code := dev.Wait(t, 3*time.Second); code != 0 {
		t.Errorf("relay exits with %d", code)
	}
}

// write makes a configuration file.
func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "relay.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRefusedFiles starts relays that must not run: each says why, with file, line and key, and exits with 1.
func TestRefusedFiles(t *testing.T) {
	port := drive.FreePort(t)
	base := fmt.Sprintf("[listen]\nbind = \"127.0.0.1:%d\"\ntls.generate = [\"localhost\"]\n", port)
	public := "[auth]\npublic = \"**\"\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unknown table":     {base + public + "[clutser]\nid = 5\n", []string{"clutser", ":6"}},
		"unknown key":       {base + public + "[cluster]\nconect = []\n", []string{"conect", ":7"}},
		"wrong type":        {base + public + "[quic]\nidle_timeout = 10\n", []string{"idle_timeout", ":7"}},
		"negative duration": {base + public + "[quic]\nidle_timeout = \"-1s\"\n", []string{"idle_timeout", ":7"}},
		"cluster id zero":   {base + public + "[cluster]\nid = 0\n", []string{"cluster.id", ":7"}},
		"bare host":         {base + public + "[cluster]\nconnect = [\"peer.example\"]\n", []string{"cluster.connect", "peer.example"}},
		"bad cost":          {base + public + "[cluster]\nconnect = [\"https://peer.example/?cost=-1&jwt=SECRETMARK\"]\n", []string{"cost"}},
		"carrier not built": {base + public + "[cluster]\nconnect = [\"tcp://peer.example:1/\"]\n", []string{"tcp"}},
		"nobody admitted":   {base, []string{"auth"}},
		"auth server":       {base + "[auth]\nurl = \"http://auth.example/\"\n", []string{"auth.url"}},
		"client CA":         {base + "tls.root = \"ca.pem\"\n" + public, []string{"listen.tls.root"}},
		"LAN secret":        {base + public + "[cluster.lan]\nenabled = true\nsecret = \"SECRETMARK\"\n", []string{"cluster.lan.secret", "64 hex digits"}},
		"old name":          {"[server]\nbind = \"[::]:443\"\n", []string{"server", "listen"}},
		"no wildcard":       {base + "[auth]\npublic = \"demo\"\n", []string{"demo/**"}},
		"not TOML":          {"= 5\n", []string{":1"}},
		"missing key file":  {"[listen]\nbind = \"127.0.0.1:0\"\ntls.cert = \"/nowhere.pem\"\ntls.key = \"/nowhere.key\"\n" + public, []string{"/nowhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, c.text)
			p := drive.Start(t, "relay", binary(t), "relay", file)
			if code := p.Wait(t, 5*time.Second); code != 1 {
				t.Errorf("exit status %d, want 1", code)
			}
			for _, want := range c.want {
				if !strings.Contains(p.Stderr(), want) {
					t.Errorf("the message lacks %q: %s", want, p.Stderr())
				}
			}
			if strings.Contains(p.Stderr(), "SECRETMARK") {
				t.Errorf("a token is printed: %s", p.Stderr())
			}
			if strings.HasPrefix(c.want[len(c.want)-1], ":") && !strings.Contains(p.Stderr(), file+c.want[len(c.want)-1]) {
				t.Errorf("the message does not name %s%s: %s", file, c.want[len(c.want)-1], p.Stderr())
			}
		})
	}
	p := drive.Start(t, "relay", binary(t), "relay", filepath.Join(t.TempDir(), "missing.toml"))
	if code := p.Wait(t, 5*time.Second); code != 1 || !strings.Contains(p.Stderr(), "missing.toml") {
		t.Errorf("a missing file: status %d, %s", code, p.Stderr())
	}
	p = drive.Start(t, "relay", binary(t), "--no-such-flag")
	if code := p.Wait(t, 5*time.Second); code != 1 || !strings.Contains(p.Stderr(), "no-such-flag") {
		t.Errorf("an unknown flag: status %d, %s", code, p.Stderr())
	}
}

// TestPortInUse starts a second relay on the port of the first.
func TestPortInUse(t *testing.T) {
	r := drive.StartRelay(t, "first")
	file := write(t, fmt.Sprintf("[listen]\nbind = \"127.0.0.1:%d\"\ntls.generate = \"localhost\"\n[auth]\npublic = \"**\"\n", r.Port))
	second := drive.Start(t, "second", binary(t), "relay", file)
	if code := second.Wait(t, 5*time.Second); code != 1 || !strings.Contains(second.Stderr(), "in use") {
		t.Errorf("status %d, %s", code, second.Stderr())
	}
}

// TestPrecedence sets one key in the file, in the environment and by a flag.
func TestPrecedence(t *testing.T) {
	fromFile, fromEnv, fromFlag := drive.FreePort(t), drive.FreePort(t), drive.FreePort(t)
	file := write(t, fmt.Sprintf("[internal]\nlisten = \"127.0.0.1:%d\"\n[listen]\nbind = \"127.0.0.1:0\"\ntls.generate = \"localhost\"\n[auth]\npublic = \"**\"\n", fromFile))
	health := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d/health", port) }
	p := drive.Start(t, "file", binary(t), "relay", file)
	drive.Get(t, health(fromFile))
	p.Stop()
	t.Setenv("MOQ_INTERNAL_LISTEN", fmt.Sprintf("127.0.0.1:%d", fromEnv))
	p = drive.Start(t, "env", binary(t), "relay", file)
	drive.Get(t, health(fromEnv))
	p.Stop()
	p = drive.Start(t, "flag", binary(t), "relay", file, "--internal-listen", fmt.Sprintf("127.0.0.1:%d", fromFlag))
	drive.Get(t, health(fromFlag))
	p.Stop()
}
