//go:build interop

package interop

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// peer is one real client: a library, a wire version and a carrier.
type peer struct {
	library string // "js" or "rust"
	version string // of the JavaScript library; the Rust one always agrees on lite-06
	raw     bool   // raw QUIC instead of WebTransport (Rust)
	socket  bool   // WebSocket instead of WebTransport (JavaScript)
}

func (p peer) String() string {
	if p.library == "rust" && p.raw {
		return "rust-lite-06-quic"
	} else if p.library == "rust" {
		return "rust-lite-06-webtransport"
	}
	if p.socket {
		return "js-" + p.version + "-websocket"
	}
	return "js-" + p.version
}

var (
	rustQUIC  = peer{library: "rust", raw: true}
	rustWT    = peer{library: "rust"}
	js05      = peer{library: "js", version: "lite-05"}
	js04      = peer{library: "js", version: "lite-04"}
	js03      = peer{library: "js", version: "lite-03"}
	jsMoql    = peer{library: "js", version: "moql"}
	js05WS    = peer{library: "js", version: "lite-05", socket: true}
	js04WS    = peer{library: "js", version: "lite-04", socket: true}
	everybody = []peer{js05WS, js04WS, rustQUIC, rustWT, js05, js04, js03, jsMoql}
)

// run starts one of the three clients (pub, sub, announced) against a relay.
func (p peer) run(t *testing.T, r drive.Relay, verb string, args ...string) *drive.Process {
	t.Helper()
	name := p.String() + " " + verb
	if p.library == "js" {
		url := r.HTTPS()
		if p.socket {
			url = r.HTTP()
			args = append(args, "--transport", "websocket")
		}
		argv := []string{filepath.Join(drive.Env(t, "MOQMESH_JS"), verb+".mjs"), url}
		argv = append(argv, args...)
		return drive.Start(t, name, "node", append(argv, "--hash", r.Hash, "--version", p.version)...)
	}
	url := r.HTTPS()
	if p.raw {
		url = r.MOQT()
	}
	argv := append([]string{"clients/lite06.py", verb, url}, args...)
	return drive.Start(t, name, drive.Env(t, "MOQMESH_PYTHON"), append(argv, "--hash", r.Hash)...)
}

// script runs one of the Python scripts beside the clients.
func script(t *testing.T, r drive.Relay, name string, args ...string) *drive.Process {
	t.Helper()
	return drive.Start(t, name+" "+strings.Join(args[:1], ""), drive.Env(t, "MOQMESH_PYTHON"), append(append([]string{"clients/" + name}, args...), "--hash", r.Hash)...)
}

// checkSummary demands a faultless summary with a reasonable number of frames.
func checkSummary(t *testing.T, sub *drive.Process, atLeast float64) drive.Event {
	t.Helper()
	s := sub.Expect(t, "summary", 30*time.Second)
	if s["ok"] != true {
		t.Errorf("%s: not ok: %v", sub.Name, s)
	}
	if frames, _ := s["frames"].(float64); frames < atLeast {
		t.Errorf("%s: %v frames, want at least %v: %v", sub.Name, frames, atLeast, s)
	}
	return s
}
