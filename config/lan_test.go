package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLAN: what discovery gets to advertise, and that the secret comes from a file too and does not print.
func TestLAN(t *testing.T) {
	digits := strings.Repeat("5a", 32)
	file := filepath.Join(t.TempDir(), "lan.key")
	if err := os.WriteFile(file, []byte(digits+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]string{
		"":                                 "",
		"us-west.local:4443":               "https://us-west.local:4443/",
		"https://User@US-West.example:443": "https://us-west.example/",
		"https://a/?cost=7#x":              "https://a/?cost=7",
		"moqt://a//b/":                     "moqt://a/b/",
	} {
		c, err := load(fmt.Sprintf("%s[cluster]\nnode = %q\nlan.enabled = true\nlan.secret = %q\n", minimal, node, file))
		if err != nil {
			t.Errorf("%s: %v", node, err)
			continue
		}
		if got := c.Cluster.LAN; got.Node != want || got.App != "default" || got.Secret == nil {
			t.Errorf("%s: %+v", node, got)
		}
		if text := fmt.Sprintf("%+v %#v", c, c.Cluster.LAN); strings.Contains(text, digits) || strings.Contains(text, "90, 90") || strings.Contains(text, "5a, 0x5a") {
			t.Errorf("the secret is printed: %s", text)
		}
	}
}
