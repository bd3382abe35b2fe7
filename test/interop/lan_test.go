//go:build interop

package interop

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// TestMulticastDNS holds LAN discovery against python-zeroconf on loopback: each finds what the other publishes, by its
// question if the other was there first and by the announcement if not, and loses it at the goodbye.
func TestMulticastDNS(t *testing.T) {
	lan := func(drive.Relay) string { return "[cluster.lan]\nenabled = true\n" }
	early := drive.StartRelayWith(t, "early", lan)
	python := drive.Start(t, "mdns", drive.Env(t, "MOQMESH_PYTHON"), "clients/mdns.py", "127.0.0.1", "12")
	python.Expect(t, "published", 10*time.Second)
	late := drive.StartRelayWith(t, "late", lan)
	for _, r := range []drive.Relay{early, late} {
		var name string
		drive.WaitFor(t, 8*time.Second, r.Name+" to be found", func() bool {
			for _, e := range python.Find("added") {
				if int(e.Number("port")) != r.Port {
					continue
				}
				name, _ = e["name"].(string)
				txt, _ := e["txt"].(map[string]any)
				if n, _ := txt["n"].(string); len(n) != 32 || txt["fp"] != r.Hash || fmt.Sprint(e["addresses"]) != "[127.0.0.1]" {
					t.Errorf("%s shows %v", r.Name, e)
				}
			}
			return name != ""
		})
		found := `msg="found a peer on the LAN" peer=moqt://127.0.0.1:9 `
		drive.WaitFor(t, 5*time.Second, r.Name+" to find the foreign record", func() bool { return strings.Contains(r.Stderr(), found) })
		if r.Name != "early" {
			continue
		}
		r.Signal(t, syscall.SIGTERM)
		r.Wait(t, 15*time.Second)
		drive.WaitFor(t, 3*time.Second, "the goodbye to be heard", func() bool {
			for _, e := range python.Find("removed") {
				if e["name"] == name {
					return true
				}
			}
			return false
		})
	}
	python.Expect(t, "withdrawn", 15*time.Second)
	gone := `msg="a peer on the LAN is gone" peer=moqt://127.0.0.1:9 `
	drive.WaitFor(t, 3*time.Second, "the foreign goodbye to be heard", func() bool { return strings.Contains(late.Stderr(), gone) })
}
