package peerlist_test

import (
	"strings"
	"testing"

	"github.com/moqmesh/moqmesh/cluster"
	"github.com/moqmesh/moqmesh/cluster/peerlist"
)

// bad are lists that must change nothing (faults 5).
var bad = map[string]string{
	"HTML":                     "<html><body>502</body></html>",
	"empty body":               "",
	"blanks":                   " \n ",
	"object":                   `{}`,
	"object with peers":        `{"peers":["https://b/"]}`,
	"null":                     `null`,
	"a string":                 `"https://b/"`,
	"number in it":             `[1]`,
	"null in it":               `[null]`,
	"true in it":               `[true]`,
	"list in it":               `[["https://b/"]]`,
	"cut":                      `["https://b/", "https://c`,
	"cut behind an entry":      `["https://b/"`,
	"second value":             `["https://b/"] ["https://c/"]`,
	"rubbish behind":           `["https://b/"],`,
	"BOM":                      "\ufeff[\"https://b/\"]",
	"bad UTF-8":                "[\"https://b/\xff\"]",
	"unknown field":            `[{"url":"https://b/","cosst":1}]`,
	"name in capitals":         `[{"URL":"https://b/"}]`,
	"duplicate names":          `[{"url":"https://b/","url":"https://c/"}]`,
	"duplicate by an escape":   `[{"url":"https://b/","\u0075rl":"https://c/"}]`,
	"no url":                   `[{"cost":1}]`,
	"null url":                 `[{"url":null}]`,
	"cost is text":             `[{"url":"https://b/","cost":"cheap"}]`,
	"cost is text of a number": `[{"url":"https://b/","cost":"1"}]`,
	"negative cost":            `[{"url":"https://b/","cost":-1}]`,
	"broken cost":              `[{"url":"https://b/","cost":1.5}]`,
	"cost with exponent":       `[{"url":"https://b/","cost":1e3}]`,
	"cost of 2^62":             `[{"url":"https://b/","cost":4611686018427387904}]`,
	"cost of 2^64":             `[{"url":"https://b/","cost":18446744073709551616}]`,
	"null cost":                `[{"url":"https://b/","cost":null}]`,
	"token is a number":        `[{"url":"https://b/","token":5}]`,
	"token no URL can carry":   `[{"url":"https://b/","token":"S3CRET&x"}]`,
	"foreign scheme":           `["ftp://h/"]`,
	"carrier not built":        `["tcp://h:1/"]`,
	"a path":                   `["/x"]`,
	"empty entry":              `[""]`,
	"no host":                  `["https:///x"]`,
	"asymmetric":               `[{"url":"https://b/","cost":1,"egress":2}]`,
	"cost twice":               `[{"url":"https://b/?cost=1","cost":1}]`,
	"jwt beside a cost":        `[{"url":"https://b/?jwt=S3CRET","cost":1}]`,
	"jwt beside a token":       `[{"url":"https://b/?jwt=S3CRET","token":"T"}]`,
	"bad cost in the URL":      `["https://b/?cost=cheap&jwt=S3CRET"]`,
	"one peer, two costs":      `["https://b/?cost=1","https://B:443?cost=2"]`,
	"one peer, two tokens":     `["https://b/?jwt=S3CRET","https://b/?jwt=T"]`,
	"space in the URL":         `["https://b/ "]`,
	"one bad among good ones":  `["https://b/","https://c/","nonsense://"]`,
	"too many":                 "[" + strings.Repeat(`"https://b/",`, 4096) + `"https://b/"]`,
}

// TestParseRefuses: bad lists are refused as a whole, and no message quotes a token.
func TestParseRefuses(t *testing.T) {
	for name, text := range bad {
		list, err := peerlist.Parse([]byte(text), cluster.Node{})
		if err == nil {
			t.Errorf("%s: accepted as %v", name, list.Entries)
			continue
		}
		if strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: a token is printed: %v", name, err)
		}
	}
}

// TestParse: what good lists mean.
func TestParse(t *testing.T) {
	self, err := cluster.ParseNode("me.example")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		text string
		want string // keys
		self bool
	}{
		"empty":              {`[]`, "", false},
		"blanks around":      {" [ ] \n", "", false},
		"strings, objects":   {`["https://a/", {"url":"https://b/","cost":2,"egress":2,"token":"T"}, {"url":"moqt://c:4443/x?cost=0"}]`, "https://a/ https://b/ moqt://c:4443/x", false},
		"bare host":          {`["a.example","b.example:4443"]`, "https://a.example/ https://b.example:4443/", false},
		"spellings of one":   {`["https://A/", "https://a:443", "a", {"url":"https://a//"}, {"url":"https://a/","cost":1}]`, "https://a/", false},
		"ourselves":          {`["https://me.example/", "https://a/"]`, "https://a/", true},
		"ourselves, bare":    {`["ME.example:443"]`, "", true},
		"empty token":        {`[{"url":"https://a/?jwt=T","token":""}]`, "https://a/", false},
		"escapes in strings": {`["https:\/\/a\/"]`, "https://a/", false},
	}
	for name, tt := range tests {
		list, err := peerlist.Parse([]byte(tt.text), self)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var keys []string
		for _, e := range list.Entries {
			keys = append(keys, e.Key())
		}
		if got := strings.Join(keys, " "); got != tt.want || list.Self != tt.self {
			t.Errorf("%s: %s, self %v", name, got, list.Self)
		}
	}
}

func TestParseSource(t *testing.T) {
	tests := map[string]struct {
		text, want string
		err        error
	}{
		"https":             {"https://u:p@API.example:8443/list?key=S3CRET#x", "https://API.example:8443", nil},
		"http":              {"http://api.example/", "http://api.example", nil},
		"path":              {"/etc/peers.json", "/etc/peers.json", nil},
		"relative path":     {"peers.json", "peers.json", nil},
		"file URL":          {"file:///etc/my%20peers.json", "/etc/my peers.json", nil},
		"file on localhost": {"file://localhost/etc/peers.json", "/etc/peers.json", nil},
		"file elsewhere":    {"file://server/etc/peers.json", "", peerlist.ErrURL},
		"file without path": {"file://", "", peerlist.ErrURL},
		"no host":           {"https:///list", "", peerlist.ErrURL},
		"not a URL":         {"http://[S3CRET/", "", peerlist.ErrURL},
		"other scheme":      {"ftp://S3CRET/", "", peerlist.ErrScheme},
		"nothing":           {"", "", peerlist.ErrEmpty},
	}
	for name, tt := range tests {
		s, err := peerlist.ParseSource(tt.text)
		if err != tt.err || s.String() != tt.want || s.IsZero() != (err != nil) { //nolint:errorlint // the very value
			t.Errorf("%s: %q, %v", name, s, err)
		}
		if err != nil && strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
