package cluster_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/moqmesh/moqmesh/cluster"
	"pgregory.net/rapid"
)

type obj = map[string]any

// peer is what a test wants to know of an entry.
type peer struct {
	Key, URL string
	Cost     int // -1 = none
}

func seen(e cluster.Entry) peer {
	p := peer{Key: e.Key(), URL: e.URL().String(), Cost: -1}
	if cost, ok := e.Price(); ok {
		p.Cost = int(cost)
	}
	return p
}

func TestParseAccepts(t *testing.T) {
	const b = "https://b.example/"
	tests := map[string]struct {
		in   any
		want peer
	}{
		"plain":                       {"https://b.example/", peer{b, b, -1}},
		"no slash":                    {"https://b.example", peer{b, b, -1}},
		"case":                        {"HTTPS://B.Example/", peer{b, b, -1}},
		"default port":                {"https://b.example:443/", peer{b, b, -1}},
		"port with zeros":             {"https://b.example:0443/", peer{b, b, -1}},
		"default port of moqt":        {"moqt://b.example:443", peer{"moqt://b.example/", "moqt://b.example/", -1}},
		"default port of http":        {"http://b.example:80/", peer{"http://b.example/", "http://b.example/", -1}},
		"default port of wss":         {"wss://b.example:443", peer{"wss://b.example/", "wss://b.example/", -1}},
		"default port of ws":          {"ws://b.example:80/x?cost=2", peer{"ws://b.example/x", "ws://b.example/x", 2}},
		"other port":                  {"moql://b.example:4443/", peer{"moql://b.example:4443/", "moql://b.example:4443/", -1}},
		"cost":                        {"https://b.example/?cost=7", peer{b, b, 7}},
		"cost zero":                   {"https://b.example/?cost=0", peer{b, b, 0}},
		"largest cost":                {"https://b.example/?cost=4611686018427387903", peer{b, b, 1<<62 - 1}},
		"escaped name of cost":        {"https://b.example/?c%6fst=7", peer{b, b, 7}},
		"token stays":                 {"https://b.example/?jwt=T", peer{b, b + "?jwt=T", -1}},
		"token and cost":              {"https://b.example/?cost=7&jwt=T", peer{b, b + "?jwt=T", 7}},
		"empty token is none":         {"https://b.example/?jwt=", peer{b, b, -1}},
		"other parameters stay":       {"https://b.example/?a=%2f&cost=7&b", peer{b, b + "?a=%2f&b", 7}},
		"empty query":                 {"https://b.example/?", peer{b, b, -1}},
		"empty parameters":            {"https://b.example/?&&cost=1&&x=1", peer{b, b + "?x=1", 1}},
		"path":                        {"https://b.example/demo", peer{b + "demo", b + "demo", -1}},
		"slashes of the path":         {"https://b.example//demo///x/", peer{b + "demo/x", b + "demo/x/", -1}},
		"dot segments":                {"https://b.example/a/../demo/./x", peer{b + "demo/x", b + "demo/x", -1}},
		"escapes of the path":         {"https://b.example/a%2fb/c", peer{b + "a%2fb/c", b + "a%2fb/c", -1}},
		"user info and fragment":      {"https://u:p@b.example/#top", peer{b, b, -1}},
		"IPv4":                        {"https://192.0.2.1/", peer{"https://192.0.2.1/", "https://192.0.2.1/", -1}},
		"IPv6":                        {"https://[2001:DB8::0:1]:443/", peer{"https://[2001:db8::1]/", "https://[2001:db8::1]/", -1}},
		"international":               {"https://Bücher.example/", peer{"https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/", -1}},
		"object":                      {obj{"url": b}, peer{b, b, -1}},
		"object with cost":            {obj{"url": b, "cost": int64(3)}, peer{b, b, 3}},
		"object with cost zero":       {obj{"url": b, "cost": int64(0)}, peer{b, b, 0}},
		"object with an unsigned":     {obj{"url": b, "cost": uint64(3)}, peer{b, b, 3}},
		"equal egress":                {obj{"url": b, "cost": int64(3), "egress": int64(3)}, peer{b, b, 3}},
		"egress one alone":            {obj{"url": b, "egress": int64(1)}, peer{b, b, 1}},
		"object with token":           {obj{"url": b, "token": "T"}, peer{b, b + "?jwt=T", -1}},
		"object with everything":      {obj{"url": b + "?x=1", "cost": int64(3), "egress": int64(3), "token": "T"}, peer{b, b + "?x=1&jwt=T", 3}},
		"empty token":                 {obj{"url": b + "?cost=2", "token": ""}, peer{b, b, 2}},
		"empty token, inline one":     {obj{"url": b + "?jwt=T", "token": ""}, peer{b, b + "?jwt=T", -1}},
		"object without policy":       {obj{"url": b + "?cost=2&jwt=T"}, peer{b, b + "?jwt=T", 2}},
		"token field, empty inline":   {obj{"url": b + "?jwt=", "token": "T"}, peer{b, b + "?jwt=T", -1}},
		"underscore in the host name": {"https://b_1.example/", peer{"https://b_1.example/", "https://b_1.example/", -1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := cluster.Parse([]any{tt.in}, cluster.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]peer{tt.want}, []peer{seen(list.Entries[0])}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	const b, shown = "https://b.example/", "https://b.example:443"
	tests := map[string]struct {
		in   any
		want cluster.EntryError
	}{
		"bare host":                   {"b.example", cluster.EntryError{Name: "b.example", Err: cluster.ErrBareHost}},
		"bare host and port":          {"b.example:4443", cluster.EntryError{Name: "b.example:4443", Err: cluster.ErrBareHost}},
		"bare host with a token":      {"b.example?jwt=SECRET", cluster.EntryError{Name: "b.example", Err: cluster.ErrBareHost}},
		"path":                        {"/x", cluster.EntryError{Err: cluster.ErrBareHost}},
		"nothing":                     {"", cluster.EntryError{Err: cluster.ErrBareHost}},
		"no host":                     {"https:///x", cluster.EntryError{Name: "https://", Err: cluster.ErrHost}},
		"port only":                   {"https://:443/", cluster.EntryError{Name: "https://:443", Err: cluster.ErrHost}},
		"unknown scheme":              {"ftp://h/", cluster.EntryError{Name: "ftp://h", Err: cluster.ErrScheme}},
		"no scheme":                   {"://h/", cluster.EntryError{Name: "://h", Err: cluster.ErrURL}},
		"tcp":                         {"tcp://h:1", cluster.EntryError{Name: "tcp://h:1", Err: cluster.ErrNotDialable}},
		"unix":                        {"unix:///run/moq", cluster.EntryError{Name: "unix://", Err: cluster.ErrNotDialable}},
		"iroh":                        {"iroh://abc", cluster.EntryError{Name: "iroh://abc", Err: cluster.ErrNotDialable}},
		"two in one":                  {"https://b.example/,https://c.example/", cluster.EntryError{Name: "https://b.example", Err: cluster.ErrURL}},
		"token in the wrong place":    {"eyJhbGciOiJIUzI1NiJ9.e30.SECRETSECRETSECRETSECRETSECRETSECRETSECRETS", cluster.EntryError{Err: cluster.ErrBareHost}},
		"space":                       {"https://b.example/a b", cluster.EntryError{Name: "https://b.example", Err: cluster.ErrURL}},
		"leading space":               {" https://b.example/", cluster.EntryError{Err: cluster.ErrURL}},
		"control":                     {"https://b.example/\x00", cluster.EntryError{Name: "https://b.example", Err: cluster.ErrURL}},
		"bad UTF-8":                   {"https://b.example/\xff", cluster.EntryError{Name: "https://b.example", Err: cluster.ErrURL}},
		"bad escape":                  {"https://b.example/%zz?jwt=SECRET", cluster.EntryError{Name: "https://b.example", Err: cluster.ErrURL}},
		"port zero":                   {"https://b.example:0/", cluster.EntryError{Name: "https://b.example:0", Err: cluster.ErrURL}},
		"large port":                  {"https://b.example:65536/", cluster.EntryError{Name: "https://b.example:65536", Err: cluster.ErrURL}},
		"scope":                       {"https://[fe80::1%25eth0]/", cluster.EntryError{Err: cluster.ErrURL}},
		"half an address":             {"https://[2001:db8::/", cluster.EntryError{Name: "https://[2001:db8::", Err: cluster.ErrURL}},
		"cost negative":               {b + "?cost=-1", cluster.EntryError{Name: shown, Err: cluster.ErrCost}},
		"cost exponent":               {b + "?cost=1e3", cluster.EntryError{Name: shown, Err: cluster.ErrCost}},
		"cost empty":                  {b + "?cost=", cluster.EntryError{Name: shown, Err: cluster.ErrCost}},
		"cost without value":          {b + "?cost", cluster.EntryError{Name: shown, Err: cluster.ErrCost}},
		"cost too large":              {b + "?cost=4611686018427387904", cluster.EntryError{Name: shown, Err: cluster.ErrCost}},
		"cost 2^64":                   {b + "?cost=18446744073709551616", cluster.EntryError{Name: shown, Err: cluster.ErrCost}},
		"cost twice":                  {b + "?cost=1&cost=1", cluster.EntryError{Name: shown, Err: cluster.ErrCost}},
		"number":                      {int64(1), cluster.EntryError{Err: cluster.ErrShape}},
		"null":                        {nil, cluster.EntryError{Err: cluster.ErrShape}},
		"list":                        {[]any{b}, cluster.EntryError{Err: cluster.ErrShape}},
		"object, unknown field":       {obj{"url": b, "cosst": int64(1)}, cluster.EntryError{Name: "https://b.example", Field: "cosst", Err: cluster.ErrUnknownField}},
		"object, other case":          {obj{"URL": b}, cluster.EntryError{Field: "URL", Err: cluster.ErrUnknownField}},
		"object without url":          {obj{"cost": int64(1)}, cluster.EntryError{Field: "url", Err: cluster.ErrFieldType}},
		"object, url is a number":     {obj{"url": int64(1)}, cluster.EntryError{Field: "url", Err: cluster.ErrFieldType}},
		"object, bare host":           {obj{"url": "b.example"}, cluster.EntryError{Name: "b.example", Err: cluster.ErrBareHost}},
		"object, cost is text":        {obj{"url": b, "cost": "cheap"}, cluster.EntryError{Name: "https://b.example", Field: "cost", Err: cluster.ErrCost}},
		"object, cost is negative":    {obj{"url": b, "cost": int64(-1)}, cluster.EntryError{Name: "https://b.example", Field: "cost", Err: cluster.ErrCost}},
		"object, cost is a fraction":  {obj{"url": b, "cost": 1.5}, cluster.EntryError{Name: "https://b.example", Field: "cost", Err: cluster.ErrCost}},
		"object, cost too large":      {obj{"url": b, "cost": int64(1 << 62)}, cluster.EntryError{Name: "https://b.example", Field: "cost", Err: cluster.ErrCost}},
		"object, egress is text":      {obj{"url": b, "egress": "1"}, cluster.EntryError{Name: "https://b.example", Field: "egress", Err: cluster.ErrCost}},
		"object, token is a number":   {obj{"url": b, "token": int64(1)}, cluster.EntryError{Name: "https://b.example", Field: "token", Err: cluster.ErrFieldType}},
		"asymmetric":                  {obj{"url": b, "cost": int64(2), "egress": int64(3)}, cluster.EntryError{Name: shown, Field: "egress", Err: cluster.ErrAsymmetric}},
		"egress alone, not one":       {obj{"url": b, "egress": int64(2)}, cluster.EntryError{Name: shown, Field: "egress", Err: cluster.ErrAsymmetric}},
		"cost field and ?cost=":       {obj{"url": b + "?cost=1", "cost": int64(1)}, cluster.EntryError{Name: shown, Field: "url", Err: cluster.ErrPolicyTwice}},
		"egress field and ?cost=":     {obj{"url": b + "?cost=1", "egress": int64(1)}, cluster.EntryError{Name: shown, Field: "url", Err: cluster.ErrPolicyTwice}},
		"cost field and ?jwt=":        {obj{"url": b + "?jwt=SECRET", "cost": int64(1)}, cluster.EntryError{Name: shown, Field: "url", Err: cluster.ErrPolicyTwice}},
		"token field and ?jwt=":       {obj{"url": b + "?jwt=SECRET", "token": "SECRET"}, cluster.EntryError{Name: shown, Field: "url", Err: cluster.ErrPolicyTwice}},
		"token field and ?cost=":      {obj{"url": b + "?cost=1", "token": "SECRET"}, cluster.EntryError{Name: shown, Field: "url", Err: cluster.ErrPolicyTwice}},
		"token that no URL can carry": {obj{"url": b, "token": "SECRET&x"}, cluster.EntryError{Name: shown, Field: "token", Err: cluster.ErrToken}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.want.Index = 1
			list, err := cluster.Parse([]any{"https://good.example/", tt.in}, cluster.Options{})
			var got *cluster.EntryError
			if !errors.As(err, &got) {
				t.Fatalf("error %v, want an *EntryError", err)
			}
			if diff := cmp.Diff(tt.want, *got, cmpopts.EquateErrors()); diff != "" {
				t.Error(diff)
			}
			if len(list.Entries) != 0 {
				t.Errorf("%d entries beside an error", len(list.Entries))
			}
			if text := err.Error(); strings.Contains(text, "SECRET") || !strings.Contains(text, "entry 2") {
				t.Errorf("message %q", text)
			}
		})
	}
}

func TestParseLists(t *testing.T) {
	const a, b = "https://a.example/", "https://b.example/"
	tests := map[string]struct {
		in   []any
		want []string
		at   int // index of the error
		err  error
	}{
		"empty":               {in: nil, want: nil},
		"mixed forms":         {in: []any{a, obj{"url": b, "cost": int64(2)}}, want: []string{a, b}},
		"the same twice":      {in: []any{b, a, "HTTPS://B.example:443"}, want: []string{b, a}},
		"the same, both ways": {in: []any{b + "?cost=2&jwt=T", obj{"url": b, "cost": int64(2), "token": "T"}}, want: []string{b}},
		"cost one is none":    {in: []any{b, b + "?cost=1"}, want: []string{b}},
		"two costs":           {in: []any{a, b, b + "?cost=2"}, at: 2, err: cluster.ErrConflict},
		"two tokens":          {in: []any{b + "?jwt=SECRET", b + "?jwt=SECRET2"}, at: 1, err: cluster.ErrConflict},
		"token and none":      {in: []any{b + "?jwt=SECRET", b}, at: 1, err: cluster.ErrConflict},
		"other paths":         {in: []any{b + "x", b + "y"}, want: []string{b + "x", b + "y"}},
		"other schemes":       {in: []any{b, "moqt://b.example"}, want: []string{b, "moqt://b.example/"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := cluster.Parse(tt.in, cluster.Options{})
			var bad *cluster.EntryError
			if !errors.Is(err, tt.err) || errors.As(err, &bad) && bad.Index != tt.at {
				t.Fatalf("error %v, want %v at %d", err, tt.err, tt.at)
			}
			if err != nil && strings.Contains(err.Error(), "SECRET") {
				t.Errorf("message %q", err)
			}
			if diff := cmp.Diff(tt.want, keys(list.Entries)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func keys(entries []cluster.Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.Key())
	}
	return out
}

func TestParseBareHosts(t *testing.T) {
	list, err := cluster.Parse([]any{"b.example", "c.example:4443", obj{"url": "d.example", "cost": int64(2)}}, cluster.Options{BareHosts: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"https://b.example/", "https://c.example:4443/", "https://d.example/"}
	if diff := cmp.Diff(want, keys(list.Entries)); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"", "/x", "b.example/x", "b.example?jwt=SECRET&a b"} {
		if _, err := cluster.Parse([]any{bad}, cluster.Options{BareHosts: true}); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func TestParseDropsOurselves(t *testing.T) {
	for _, node := range []string{"self.example", "self.example:443", "https://self.example/?cost=3", "HTTPS://SELF.example"} {
		self, err := cluster.ParseNode(node)
		if err != nil {
			t.Fatal(err)
		}
		list, err := cluster.Parse([]any{"https://a.example/", obj{"url": "https://self.example:443", "cost": int64(9)}}, cluster.Options{Self: self})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"https://a.example/"}, keys(list.Entries)); diff != "" || !list.Self {
			t.Errorf("node %s, self %v: %s", node, list.Self, diff)
		}
	}
}

func TestParseNode(t *testing.T) {
	tests := map[string]struct {
		in, key string
		err     error
	}{
		"bare":         {"us-west.example", "https://us-west.example/", nil},
		"bare, port":   {"us-west.local:4443", "https://us-west.local:4443/", nil},
		"URL":          {"moqt://us-west.example:443", "moqt://us-west.example/", nil},
		"not dialable": {"tcp://us-west.example:1/", "", cluster.ErrNotDialable},
		"empty":        {"", "", cluster.ErrBareHost},
		"bad cost":     {"https://us-west.example/?cost=x", "", cluster.ErrCost},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n, err := cluster.ParseNode(tt.in)
			if !errors.Is(err, tt.err) || n.Key() != tt.key || n.IsZero() != (tt.err != nil) {
				t.Errorf("got %q, %v", n.Key(), err)
			}
		})
	}
}

// TestEntryPrintsNoSecrets looks at every way to print an entry (faults 6, C7).
func TestEntryPrintsNoSecrets(t *testing.T) {
	list, err := cluster.Parse([]any{
		"https://user:SECRET@b.example/SECRET?jwt=SECRET&x=SECRET",
		obj{"url": "https://c.example/SECRET", "token": "SECRET"},
	}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "entry", list.Entries[0], "list", list.Entries)
	for _, e := range list.Entries {
		fmt.Fprintf(&log, "%v %+v %#v %s %q", e, e, e, e, e)
	}
	fmt.Fprintf(&log, "%v %+v %#v", list, list, list)
	if strings.Contains(log.String(), "SECRET") {
		t.Error(log.String())
	}
}

func TestWithToken(t *testing.T) {
	list, err := cluster.Parse([]any{"https://a.example/?x=1", "https://b.example/?jwt=own"}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"https://a.example/?x=1&jwt=shared", "https://b.example/?jwt=own"} {
		if got := list.Entries[i].WithToken("shared").URL().String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := list.Entries[0].URL().String(); got != "https://a.example/?x=1" {
		t.Errorf("WithToken changed the original: %s", got)
	}
}

// TestParseNeverPanicsNorLeaks feeds arbitrary text.
func TestParseNeverPanicsNorLeaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`(https|HTTP|moqt|wss|x)?(:|://|/)?[a-zA-Z0-9.:@\[\]%?&=#/\\ -]{0,30}`).Draw(t, "text") + "?jwt=SECRET"
		list, err := cluster.Parse([]any{text}, cluster.Options{BareHosts: rapid.Bool().Draw(t, "bare")})
		if err != nil {
			if strings.Contains(err.Error(), "SECRET") {
				t.Fatalf("%q: message %q", text, err)
			}
			return
		}
		// What was accepted is in normal form: reading it again changes nothing.
		e := list.Entries[0]
		again, err := cluster.Parse([]any{e.URL().String()}, cluster.Options{})
		if err != nil || again.Entries[0].Key() != e.Key() || again.Entries[0].URL().String() != e.URL().String() {
			t.Fatalf("%q: %s, then %v, %v", text, e.URL(), again, err)
		}
		if strings.Contains(fmt.Sprint(e), "SECRET") {
			t.Fatalf("%q prints %q", text, e)
		}
	})
}
