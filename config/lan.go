package config

import (
	"os"
	"slices"

	"github.com/moqmesh/moqmesh/lan"
	"github.com/moqmesh/moqmesh/lite/message"
)

// LAN is the discovery of peers on the local network.
type LAN struct {
	Enabled bool
	App     string
	Secret  *lan.Secret // read already; nil = none
	Node    string      // the address to advertise; empty = none
}

var lanKeys = []*key{
	newKey("cluster.lan.enabled", boolKind, about{
		def: "false",
		doc: "Advertise this relay on the local network (mDNS) and dial the relays that advertise back. Peers pin our certificate if it is generated; with one from files `cluster.node` is needed.",
	}, func(d *draft) *bool { return &d.Cluster.LAN.Enabled }),
	newKey("cluster.lan.secret", textKind, about{
		example: `"/etc/moqmesh/lan.key"`,
		doc:     "Key of the group, 64 hex digits or the file that holds them: only relays with the same are discovered and let in. It proves who wrote a record and hides nothing: whoever is on the network can read the record. Unset: whoever can reach the listener may join.",
	}, func(d *draft) *string { return &d.lanSecret }),
	newKey("cluster.lan.app", textKind, about{
		example: `"default"`,
		doc:     "Name under which relays find each other, 1 to 62 of a-z, 0-9 and the dash; those with another name are never seen. Unset: `default`.",
	}, func(d *draft) *string { return &d.Cluster.LAN.App }, lan.CheckApp),
}

// lanDiscovery checks what discovery needs from other keys, and reads the secret.
func (l *loader) lanDiscovery() {
	c := &l.Cluster.LAN
	if !c.Enabled {
		for _, name := range []string{"cluster.lan.secret", "cluster.lan.app"} {
			if l.has(name) {
				l.fail("without effect: cluster.lan.enabled is not true", name)
			}
		}
		return
	}
	if l.Cluster.Node.IsZero() && len(l.certs) > 0 {
		l.fail("peers would have nothing to trust: give cluster.node, or a generated certificate instead of one from files", "cluster.lan.enabled")
	}
	if !slices.ContainsFunc(l.Connect.Versions, func(v message.Version) bool {
		return v.HasSetup() && slices.Contains(l.Listen.Versions, v)
	}) {
		l.fail("listen.version and connect.version have no version in common that carries the credential of LAN peers: moq-lite-05 or newer",
			"cluster.lan.enabled")
	}
	if c.App == "" {
		c.App = lan.DefaultApp
	}
	c.Node = l.lanNode()
	if l.lanSecret == "" {
		if l.has("cluster.lan.secret") {
			l.fail("is empty", "cluster.lan.secret")
		}
		return
	}
	secret, err := readSecret(l.lanSecret)
	if err != nil {
		l.fail(err.Error(), "cluster.lan.secret")
	}
	c.Secret = secret
}

// lanNode is our address in the form that peers read.
func (l *loader) lanNode() string {
	node, ok := l.Cluster.Node.Advertised()
	if err := lan.CheckNode(node); err != nil || !ok {
		l.fail("with cluster.lan it is shown to everybody on the network: nothing but ?cost= may be in its query, and it must be at most 250 bytes long", "cluster.node")
	}
	return node
}

// readSecret takes digits or the name of a file. Its errors hold neither.
func readSecret(text string) (*lan.Secret, error) {
	if s, err := lan.ParseSecret(text); err == nil {
		return s, nil
	}
	content, err := os.ReadFile(text)
	if err != nil {
		return nil, &secretError{"neither 64 hex digits nor a file that can be read", withoutPath(err)}
	}
	s, err := lan.ParseSecret(string(content))
	if err != nil {
		return nil, &secretError{"the file does not hold what it should", err}
	}
	return s, nil
}

// secretError says what is wrong with a secret without showing it.
type secretError struct {
	text string
	err  error
}

func (e *secretError) Error() string { return e.text + ": " + e.err.Error() }
func (e *secretError) Unwrap() error { return e.err }
