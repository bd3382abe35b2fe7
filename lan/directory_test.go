package lan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// heard is a record as a browser hands it on.
func heard(r record, since time.Duration, texts ...string) found {
	return found{instance: r.instance, port: r.port, txt: r.txt(), addrs: addrs(texts...), since: epoch.Add(since)}
}

func withNode(r record, node string) record { r.node = node; return r }

func showEvents(events []event) (out []string) {
	for _, e := range events {
		text := fmt.Sprintf("%s %s %s", [...]string{"found", "changed", "lost", "unusable"}[e.kind], e.peer.Instance, e.peer.Address)
		if len(e.peer.Addrs) > 0 {
			text += fmt.Sprint(" ", e.peer.Addrs)
		}
		out = append(out, text)
	}
	return out
}

// TestDirectory follows one list through its life (L11).
func TestDirectory(t *testing.T) {
	d := newDirectory(group{app: "default"}, recordOf("b0"))
	b1, c1 := recordOf("b1"), recordOf("c1")
	a9, b2 := recordOf("a9"), recordOf("b2") // one that dials us, one that we dial
	moved, moved2 := b1, b2
	moved2.port = 4444
	moved.port = 4444
	nodeX, nodeY := withNode(recordOf("d1"), "https://x/"), withNode(recordOf("d1"), "https://y/?cost=2")
	restarted := withNode(recordOf("d0"), "https://x/")
	for _, step := range []struct {
		name  string
		links [][]found
		want  []string
	}{
		{"nobody", nil, nil},
		{"two, on two interfaces", [][]found{{heard(b1, 1, "10.0.0.2")}, {heard(b1, 2, "10.1.0.2"), heard(c1, 1, "10.1.0.3")}}, []string{
			"found b1 moqt://10.0.0.2:4443 [10.0.0.2:4443 10.1.0.2:4443]", "found c1 moqt://10.1.0.3:4443 [10.1.0.3:4443]",
		}},
		{"the same", [][]found{{heard(b1, 1, "10.0.0.2")}, {heard(b1, 2, "10.1.0.2"), heard(c1, 1, "10.1.0.3")}}, nil},
		{"an interface gone, the name changes", [][]found{nil, {heard(b1, 2, "10.1.0.2"), heard(c1, 1, "10.1.0.3")}}, []string{
			"changed b1 moqt://10.1.0.2:4443 [10.1.0.2:4443]",
		}},
		{"back, the name stays", [][]found{{heard(b1, 3, "10.0.0.2")}, {heard(b1, 2, "10.1.0.2")}}, []string{
			"lost c1 moqt://10.1.0.3:4443 [10.1.0.3:4443]", "changed b1 moqt://10.1.0.2:4443 [10.0.0.2:4443 10.1.0.2:4443]",
		}},
		{"new port, heard on one interface first", [][]found{{heard(moved, 4, "10.0.0.2")}, {heard(b1, 2, "10.1.0.2")}}, []string{
			"changed b1 moqt://10.1.0.2:4444 [10.0.0.2:4444 10.1.0.2:4444]",
		}},
		{"a node", [][]found{{heard(nodeX, 5, "10.0.0.4")}}, []string{
			"lost b1 moqt://10.1.0.2:4444 [10.0.0.2:4444 10.1.0.2:4444]", "found d1 https://x/",
		}},
		{"restarts, its old instance is still there", [][]found{{heard(nodeX, 5, "10.0.0.4"), heard(restarted, 6, "10.0.0.4")}}, []string{"changed d0 https://x/"}},
		{"the new instance goes, the old is still there", [][]found{{heard(nodeX, 5, "10.0.0.4")}}, []string{"changed d1 https://x/"}},
		{"another node", [][]found{{heard(nodeY, 7, "10.0.0.4")}}, []string{"lost d1 https://x/", "found d1 https://y/"}},
		{"gone", nil, []string{"lost d1 https://y/"}},
		{"a peer without node", [][]found{{heard(b1, 8, "10.0.0.2", "fe80::1")}}, []string{"found b1 moqt://10.0.0.2:4443 [10.0.0.2:4443]"}},
		{"killed and started anew, its old instance is still there", [][]found{{heard(b1, 8, "10.0.0.2", "fe80::1"), heard(b2, 9, "10.0.0.2", "fe80::1")}}, []string{
			"lost b1 moqt://10.0.0.2:4443 [10.0.0.2:4443]", "found b2 moqt://10.0.0.2:4443 [10.0.0.2:4443]",
		}},
		{"anew, and now it dials us", [][]found{{heard(b1, 8, "10.0.0.2"), heard(b2, 9, "10.0.0.2"), heard(a9, 10, "10.0.0.2")}}, []string{
			"lost b2 moqt://10.0.0.2:4443 [10.0.0.2:4443]",
		}},
		{"one of two addresses in common", [][]found{{heard(b1, 8, "10.0.0.2", "10.0.0.3"), heard(b2, 9, "10.0.0.2")}}, []string{
			"found b1 moqt://10.0.0.3:4443 [10.0.0.3:4443]", "found b2 moqt://10.0.0.2:4443 [10.0.0.2:4443]",
		}},
		{"another port", [][]found{{heard(b1, 8, "10.0.0.2"), heard(moved2, 9, "10.0.0.2")}}, []string{
			"changed b1 moqt://10.0.0.2:4443 [10.0.0.2:4443]", "changed b2 moqt://10.0.0.2:4444 [10.0.0.2:4444]",
		}},
		{"gone", nil, []string{"lost b1 moqt://10.0.0.2:4443 [10.0.0.2:4443]", "lost b2 moqt://10.0.0.2:4444 [10.0.0.2:4444]"}},
		{"only link-local", [][]found{{heard(b1, 8, "fe80::1")}}, []string{"unusable b1 "}},
		{"said once", [][]found{{heard(b1, 8, "fe80::1")}}, nil},
		{"better", [][]found{{heard(b1, 8, "fe80::1", "fd00::1")}}, []string{"found b1 moqt://[fd00::1]:4443 [[fd00::1]:4443]"}},
	} {
		if diff := cmp.Diff(step.want, showEvents(d.update(step.links))); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// TestDirectoryRefuses are records that are found and not dialed.
func TestDirectoryRefuses(t *testing.T) {
	secret := group{app: "default", secret: secretOf(t, testSecret)}
	sealed := recordOf("z1")
	secret.seal(&sealed)
	stolen := sealed // a copied proof under another name
	stolen.instance = "z2"
	bad := recordOf("z3")
	bad.nonce = "../x"
	for name, test := range map[string]struct {
		group  group
		self   record
		record record
		want   int
	}{
		"open":              {group{app: "default"}, recordOf("b0"), recordOf("z1"), 1},
		"it dials":          {group{app: "default"}, recordOf("b0"), recordOf("a1"), 0},
		"ourselves":         {group{app: "default"}, recordOf("b0"), recordOf("b0"), 0},
		"same node":         {group{app: "default"}, withNode(recordOf("b0"), "https://a/"), withNode(recordOf("z1"), "https://a/"), 0},
		"malformed":         {group{app: "default"}, recordOf("b0"), bad, 0},
		"with a secret":     {group{app: "default"}, recordOf("b0"), sealed, 0},
		"secret":            {secret, recordOf("b0"), sealed, 1},
		"without the":       {secret, recordOf("b0"), recordOf("z1"), 0},
		"stolen proof":      {secret, recordOf("b0"), stolen, 0},
		"node beats number": {group{app: "default"}, recordOf("zz"), withNode(recordOf("a1"), "https://a/"), 0},
	} {
		d := newDirectory(test.group, test.self)
		d.update([][]found{{heard(test.record, time.Second, "10.0.0.2")}})
		got := d.list()
		if len(got) != test.want {
			t.Errorf("%s: %v", name, got)
		}
		for _, p := range got {
			if test.group.secret != nil && strings.Contains(p.Path, test.record.nonce) {
				t.Errorf("%s: the nonce is the credential", name)
			}
		}
	}
}
