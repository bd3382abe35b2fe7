//go:build e2e && rust

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moqmesh/moqmesh/internal/drive"
)

// These tests mesh our relay with the Rust one, whose binary MOQ_RELAY names: see docs/compat.md.

// rustRelay is a Rust relay, open to everybody.
type rustRelay struct {
	drive.Relay
	args []string
}

// startRust runs the Rust relay with more flags.
func startRust(t *testing.T, name string, id int, args ...string) *rustRelay {
	t.Helper()
	port := drive.FreePort(t) // the certificate hash is fetched from the port of QUIC
	r := &rustRelay{Relay: drive.Relay{Host: "127.0.0.1", Port: port, Web: port, Internal: drive.FreePort(t)}}
	r.args = append([]string{
		"--listen", fmt.Sprintf("127.0.0.1:%d", r.Port), "--listen-tls-generate", "localhost,127.0.0.1",
		"--web-http-listen", fmt.Sprintf("127.0.0.1:%d", r.Web), "--internal-listen", fmt.Sprintf("127.0.0.1:%d", r.Internal),
		"--cluster-id", fmt.Sprint(id), "--auth-public", "**", "--connect-tls-insecure", "--drain-timeout", "5s", "--log-level", "info",
	}, args...)
	r.run(t, name)
	return r
}

func (r *rustRelay) run(t *testing.T, name string) {
	t.Helper()
	r.Process = drive.Start(t, name, drive.Env(t, "MOQ_RELAY"), r.args...)
	r.Hash = strings.TrimSpace(drive.Get(t, fmt.Sprintf("http://127.0.0.1:%d/certificate.sha256", r.Web)))
}

// meshRelay starts one of ours that dials some URLs.
func meshRelay(t *testing.T, name string, id int, urls ...string) drive.Relay {
	t.Helper()
	return drive.StartRelayWith(t, name, func(drive.Relay) string {
		quoted := make([]string, len(urls))
		for i, u := range urls {
			quoted[i] = fmt.Sprintf("%q", u)
		}
		return fmt.Sprintf("[connect.tls]\ninsecure = true\n[cluster]\nid = %d\nconnect = [%s]\n", id, strings.Join(quoted, ", "))
	})
}

// python runs a client of the Rust library.
func python(t *testing.T, name string, args ...string) *drive.Process {
	t.Helper()
	return drive.Start(t, name, drive.Env(t, "MOQMESH_PYTHON"), append([]string{"../interop/clients/lite06.py"}, append(args, "--insecure")...)...)
}

// javascript runs a client of the JavaScript library.
func javascript(t *testing.T, name, verb string, args ...string) *drive.Process {
	t.Helper()
	return drive.Start(t, name, "node", append([]string{filepath.Join(drive.Env(t, "MOQMESH_JS"), verb+".mjs")}, append(args, "--insecure")...)...)
}

// follow keeps a list of what one relay announces, with our client.
func follow(t *testing.T, name string, r drive.Relay) *drive.Process {
	t.Helper()
	p := drive.Start(t, name, binary(t), "announced", r.HTTPS(), "--insecure")
	p.Expect(t, "connected", 10*time.Second)
	return p
}

// last returns the last line about a broadcast.
func last(p *drive.Process, path string) (out drive.Event) {
	for _, kind := range []string{"announced", "changed", "withdrawn"} {
		for _, e := range p.Find(kind) {
			if e["path"] == path && (out == nil || e.Number("t") >= out.Number("t")) {
				out = e
			}
		}
	}
	return out
}

// is reports whether a broadcast is announced with a warm cost and over some relays, in this order, behind its publisher.
func is(p *drive.Process, path string, warm float64, relays ...float64) bool {
	e := last(p, path)
	hops, _ := e["hops"].([]any)
	if e == nil || e.Name() == "withdrawn" || e.Number("warm") != warm || len(hops) != len(relays)+1 {
		return false
	}
	for i, id := range relays {
		if hops[i+1] != id {
			return false
		}
	}
	return true
}

// playAll has viewers of three libraries watch for some seconds, and demands that none of them misses anything.
func playAll(t *testing.T, where string, r drive.Relay, path string) {
	t.Helper()
	subs := []*drive.Process{
		drive.Start(t, "ours at "+where, binary(t), "sub", r.HTTPS(), path, "--insecure", "--format", "js", "--seconds", "4"),
		python(t, "moq-rs at "+where, "sub", r.MOQT(), path, "video", "--seconds", "4"),
		javascript(t, "@moq/net at "+where, "sub", r.HTTPS(), path, "video", "--seconds", "4"),
	}
	for _, s := range subs {
		if e := s.Expect(t, "summary", 30*time.Second); e["ok"] != true || e.Number("frames") < 60 {
			t.Errorf("%s: %v", s.Name, e)
		}
	}
}

// TestRustPair: a link between the two relays, whoever dials and by either scheme, carries announcements with hop lists and
// costs, content both ways, withdrawals; it outlives the death of either end.
func TestRustPair(t *testing.T) {
	for _, scheme := range []string{"https", "moqt"} {
		for _, weDial := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, we dial=%v", scheme, weDial), func(t *testing.T) {
				const us, them = 11, 22
				url := func(r drive.Relay) string { return fmt.Sprintf("%s://127.0.0.1:%d/?cost=7", scheme, r.Port) }
				var ours drive.Relay
				var rust *rustRelay
				if weDial {
					rust = startRust(t, "rust", them)
					ours = meshRelay(t, "ours", us, url(rust.Relay))
				} else {
					ours = meshRelay(t, "ours", us)
					rust = startRust(t, "rust", them, "--cluster-connect", url(ours))
				}
				atOurs, atRust := follow(t, "list of ours", ours), follow(t, "list of rust", rust.Relay)
				here := python(t, "pub at ours", "pub", ours.MOQT(), "here")
				there := javascript(t, "pub at rust", "pub", rust.HTTPS(), "there", "video")
				drive.WaitFor(t, 15*time.Second, "here at rust", func() bool { return is(atRust, "here", 8, us, them) })
				drive.WaitFor(t, 15*time.Second, "there at ours", func() bool { return last(atOurs, "there") != nil })
				t.Logf("here at rust: %v; there at ours: %v", last(atRust, "here"), last(atOurs, "there"))
				playAll(t, "rust", rust.Relay, "here")
				playAll(t, "ours", ours, "there")
				if got := ours.Metric(t, "moqmesh_upstream_subscriptions"); got > 2 {
					t.Errorf("%v upstream subscriptions for two tracks", got)
				}

				there.Stop()
				gone := time.Now()
				drive.WaitFor(t, 3*time.Second, "there withdrawn at ours", func() bool { return last(atOurs, "there").Name() == "withdrawn" })
				t.Logf("withdrawn across after %v", time.Since(gone))
				back := python(t, "pub at rust", "pub", rust.MOQT(), "there")
				drive.WaitFor(t, 15*time.Second, "there again", func() bool { return last(atOurs, "there").Name() != "withdrawn" })

				rust.Kill()
				gone = time.Now()
				drive.WaitFor(t, 12*time.Second, "the routes of a killed Rust relay to go", func() bool { return last(atOurs, "there").Name() == "withdrawn" })
				t.Logf("death of the Rust relay noticed after %v", time.Since(gone))
				rust.run(t, "rust again")
				gone = time.Now()
				atRust = follow(t, "list of rust again", rust.Relay)
				drive.WaitFor(t, 40*time.Second, "here at rust again", func() bool { return is(atRust, "here", 8, us, them) })
				t.Logf("linked after %v", time.Since(gone))

				ours.Kill()
				gone = time.Now()
				drive.WaitFor(t, 15*time.Second, "the routes of our killed relay to go", func() bool { return last(atRust, "here").Name() == "withdrawn" })
				t.Logf("death of ours noticed after %v", time.Since(gone))
				ours.Restart(t)
				gone = time.Now()
				atOurs = follow(t, "list of ours again", ours)
				drive.WaitFor(t, 60*time.Second, "there at ours again", func() bool { return last(atOurs, "there") != nil })
				t.Logf("linked after %v", time.Since(gone))
				drive.WaitFor(t, 40*time.Second, "here at rust once more", func() bool { return is(atRust, "here", 8, us, them) })
				playAll(t, "rust", rust.Relay, "here")
				playAll(t, "ours", ours, "there")
				_, _ = here, back
			})
		}
	}
}

// TestRustDrains: a relay that drains is left at the end of its window, and meanwhile serves.
func TestRustDrains(t *testing.T) {
	for _, weDial := range []bool{true, false} {
		t.Run(fmt.Sprintf("we dial=%v", weDial), func(t *testing.T) {
			var ours drive.Relay
			var rust *rustRelay
			if weDial {
				rust = startRust(t, "rust", 22)
				ours = meshRelay(t, "ours", 11, rust.HTTPS())
			} else {
				ours = meshRelay(t, "ours", 11)
				rust = startRust(t, "rust", 22, "--cluster-connect", ours.HTTPS())
			}
			atOurs, atRust := follow(t, "list of ours", ours), follow(t, "list of rust", rust.Relay)
			drive.Start(t, "pub at rust", binary(t), "pub", rust.HTTPS(), "there", "--insecure")
			drive.Start(t, "pub at ours", binary(t), "pub", ours.HTTPS(), "here", "--insecure")
			drive.WaitFor(t, 15*time.Second, "both", func() bool { return last(atOurs, "there") != nil && last(atRust, "here") != nil })

			rust.Signal(t, syscall.SIGTERM)
			begin := time.Now()
			if weDial { // it says nothing on sessions that it has dialed, and ends them when it exits
				drive.WaitFor(t, 2*time.Second, "the routes at their maximum", func() bool { return last(atOurs, "there").Number("warm") > 1e6 })
				t.Logf("%v after SIGTERM of the Rust relay: %v", time.Since(begin), last(atOurs, "there"))
			}
			code := rust.Wait(t, 7*time.Second)
			t.Logf("it exits with %d after %v", code, time.Since(begin))
			drive.WaitFor(t, 2*time.Second, "the routes to go", func() bool { return last(atOurs, "there").Name() == "withdrawn" })

			rust.run(t, "rust again")
			atRust = follow(t, "list of rust again", rust.Relay)
			drive.WaitFor(t, 40*time.Second, "linked again", func() bool { return last(atRust, "here") != nil })
			ours.Signal(t, syscall.SIGTERM)
			begin = time.Now()
			if code := ours.Wait(t, 3*time.Second); code != 0 {
				t.Errorf("ours exits with %d", code)
			}
			drive.WaitFor(t, 2*time.Second, "our routes to go", func() bool { return last(atRust, "here").Name() == "withdrawn" })
			t.Logf("our drain of 1 s was over after %v", time.Since(begin))
		})
	}
}

// TestRustInTheMiddle: the Rust relay as a neighbour in a mesh. It passes our hop lists and both costs on, and our changes of
// a route as changes, not as ends and beginnings; a viewer plays through them.
func TestRustInTheMiddle(t *testing.T) {
	list := filepath.Join(t.TempDir(), "peers.json")
	write := func(text string) {
		t.Helper()
		err := os.WriteFile(list+".new", []byte(text), 0o600)
		if err == nil {
			err = os.Rename(list+".new", list)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("[]")
	rust := startRust(t, "rust", 22)
	a := meshRelay(t, "a", 11, rust.HTTPS()+"?cost=3")
	c := drive.StartRelayWith(t, "c", func(drive.Relay) string {
		return fmt.Sprintf("[connect.tls]\ninsecure = true\n[cluster]\nid = 33\nconnect = %q\nconnect_api = %q\n", rust.MOQT()+"?cost=10", list)
	})
	atC := follow(t, "list of c", c)
	drive.Start(t, "pub at a", binary(t), "pub", a.HTTPS(), "show", "--insecure")
	drive.WaitFor(t, 15*time.Second, "show at c", func() bool { return is(atC, "show", 14, 11, 22, 33) })
	routes := drive.Get(t, c.InternalURL("/routes"))
	t.Logf("at c: %v\n%s", last(atC, "show"), routes)
	if !strings.Contains(routes, `"warm":14,"cold":14`) {
		t.Error("both costs should be 14")
	}
	sub := drive.Start(t, "sub at c", binary(t), "sub", c.HTTPS(), "show", "--insecure", "--seconds", "14")
	sub.Expect(t, "second", 10*time.Second)
	time.Sleep(time.Second)
	if via(t, c) != strings.TrimSuffix(rust.MOQT(), "/")+"/" {
		t.Errorf("c pulls from %s", via(t, c))
	}

	// A dearer way beside it changes nothing, a cheaper one does, in place; then back.
	step := func(text, what string, ok func() bool) {
		t.Helper()
		begin := time.Now()
		write(text)
		drive.WaitFor(t, 15*time.Second, what, ok)
		t.Logf("%s after %v: %v", what, time.Since(begin), last(atC, "show"))
		time.Sleep(2 * time.Second)
	}
	direct := fmt.Sprintf(`[{"url": %q, "cost": 2}]`, a.HTTPS())
	step(direct, "the direct way", func() bool { return is(atC, "show", 3, 11, 33) })
	step("[]", "back through rust", func() bool { return is(atC, "show", 14, 11, 22, 33) })
	step(direct, "the direct way again", func() bool { return is(atC, "show", 3, 11, 33) })
	if e := sub.Expect(t, "summary", 30*time.Second); e["ok"] != true {
		t.Errorf("the viewer at c: %v", e)
	}
	for _, e := range atC.Find("withdrawn") {
		t.Errorf("c withdrew: %v", e)
	}
	if n := len(atC.Find("announced")); n != 1 {
		t.Errorf("%d announcements instead of changes", n)
	}

	// The other way round: the Rust relay's viewers see our changes in place.
	atRust := follow(t, "list of rust", rust.Relay)
	drive.WaitFor(t, 5*time.Second, "show at rust", func() bool { return is(atRust, "show", 4, 11, 22) })
	javascript(t, "pub of an older version at a", "pub", a.HTTPS(), "old", "video", "--version", "lite-05")
	drive.WaitFor(t, 15*time.Second, "old at rust, its cold cost unknown", func() bool {
		return is(atRust, "old", 4, 11, 22) && last(atRust, "old").Number("cold") == 1<<62-1
	})
	for _, price := range []int{5, 50, 5} {
		pub := python(t, fmt.Sprintf("pub for %d", price), "pub", a.MOQT(), "priced", "--price", fmt.Sprint(price))
		want := float64(price + 4)
		drive.WaitFor(t, 15*time.Second, "priced at rust", func() bool { return is(atRust, "priced", want, 11, 22) })
		drive.WaitFor(t, 15*time.Second, "priced at c", func() bool { return is(atC, "priced", float64(price+3), 11, 33) })
		pub.Stop()
		drive.WaitFor(t, 5*time.Second, "priced withdrawn at rust", func() bool { return last(atRust, "priced").Name() == "withdrawn" })
	}
}

// rust starts a Rust relay on a host of the lab, with LAN discovery.
func (h host) rust(t *testing.T, name string, args ...string) *drive.Process {
	t.Helper()
	return drive.Start(t, name, "ip", append([]string{
		"netns", "exec", h.ns, drive.Env(t, "MOQ_RELAY"), "--listen", "[::]:443", "--listen-tls-generate", "localhost",
		"--web-http-listen", "[::]:443", "--internal-listen", "127.0.0.1:4444", "--auth-public", "**", "--cluster-lan",
		"--log-level", "info",
	}, args...)...)
}

// TestRustLAN: our relay and the Rust one find each other on a network, with and without a secret, whoever dials, and serve
// each other's clients. Groups with different secrets, or with and without, do not see each other.
func TestRustLAN(t *testing.T) {
	secret := strings.Repeat("5a", 32)
	for name, lines := range map[string]string{"open": "", "secret": fmt.Sprintf("secret = %q\n", secret)} {
		for _, weDial := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, we dial=%v", name, weDial), func(t *testing.T) {
				l := newLab(t)
				us, them := l.host(t), l.host(t)
				if !weDial { // the smaller id dials
					us, them = them, us
				}
				flags := []string{"--cluster-node", "https://" + them.ip + "/"}
				if lines != "" {
					flags = append(flags, "--cluster-lan-secret", secret)
				}
				ours := us.relay(t, "ours", lines+fmt.Sprintf("[cluster]\nnode = %q\n", "https://"+us.ip+"/"))
				begin := time.Now()
				rust := them.rust(t, "rust", flags...)
				meshed(t, 10*time.Second, 1, us, them)
				t.Logf("meshed after %v", time.Since(begin))
				if dialed := links(us) == 1; dialed != weDial {
					t.Errorf("we dial: %v", dialed)
				}
				stays(t, 2*time.Second, 1, us, them)
				across(t, us, them)
				across(t, them, us)

				begin = time.Now()
				rust.Signal(t, syscall.SIGTERM)
				rust.Wait(t, 15*time.Second)
				// Without a drain window it says goodbye on the network, but not on sessions that it has dialed.
				drive.WaitFor(t, 12*time.Second, "the Rust relay to be gone", func() bool { return links(us) == 0 && len(us.sessions(t)) == 0 })
				t.Logf("the Rust relay was gone for ours after %v", time.Since(begin))
				them.rust(t, "rust again", flags...)
				meshed(t, 10*time.Second, 1, us, them)
				begin = time.Now()
				ours.Signal(t, syscall.SIGTERM)
				ours.Wait(t, 5*time.Second)
				drive.WaitFor(t, 5*time.Second, "ours to be gone", func() bool { return links(them) == 0 })
				t.Logf("ours was gone for the Rust relay after %v", time.Since(begin))
			})
		}
	}
	t.Run("without node", func(t *testing.T) {
		l := newLab(t)
		us, them := l.host(t), l.host(t)
		seen := map[bool]int{}
		for n := 0; len(seen) < 2; n++ { // random ids decide
			if n == 16 {
				t.Fatalf("one side has dialed each time: %v", seen)
			}
			ours := us.relay(t, "ours", "")
			rust := them.rust(t, "rust")
			meshed(t, 10*time.Second, 1, us, them)
			weDial := links(us) == 1
			if seen[weDial]++; seen[weDial] == 1 {
				across(t, us, them)
				across(t, them, us)
			}
			rust.Signal(t, syscall.SIGTERM)
			rust.Wait(t, 15*time.Second)
			ours.Signal(t, syscall.SIGTERM)
			ours.Wait(t, 5*time.Second)
		}
		t.Logf("we dialed %d times, the Rust relay %d", seen[true], seen[false])
	})
	for name, group := range map[string]struct {
		lines string
		flags []string
	}{
		"secret and none":   {fmt.Sprintf("secret = %q\n", secret), nil},
		"none and secret":   {"", []string{"--cluster-lan-secret", secret}},
		"different secrets": {fmt.Sprintf("secret = %q\n", strings.Repeat("a5", 32)), []string{"--cluster-lan-secret", secret}},
		"different apps":    {"app = \"one\"\n", []string{"--cluster-lan-app", "two"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			us, them := l.host(t), l.host(t)
			us.relay(t, "ours", group.lines)
			them.rust(t, "rust", group.flags...)
			drive.WaitFor(t, 10*time.Second, "both to serve", func() bool { return us.page("/health") != "" && them.page("/health") != "" })
			stays(t, 5*time.Second, 0, us, them)
		})
	}
}

// across publishes on one host and watches on the other.
func across(t *testing.T, from, to host) {
	t.Helper()
	pub := from.run(t, "pub", "pub", "http://127.0.0.1:443/", "demo")
	sub := to.run(t, "sub", "sub", "http://127.0.0.1:443/", "demo", "--seconds", "3")
	if summary := sub.Expect(t, "summary", 20*time.Second); summary["ok"] != true || summary.Number("frames") < 60 {
		t.Errorf("from %s to %s: %v", from.ip, to.ip, summary)
	}
	pub.Stop()
}

// sessions lists what /cluster says of accepted peers.
func (h host) sessions(t *testing.T) (out []any) {
	t.Helper()
	var page struct{ Accepted []any }
	if err := json.Unmarshal([]byte(h.page("/cluster")), &page); err != nil {
		t.Fatal(err)
	}
	return page.Accepted
}
