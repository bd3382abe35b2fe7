package lan

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var unexported = cmp.AllowUnexported(record{}, found{}, event{}, outgoing{})

func TestTXT(t *testing.T) {
	full := record{nonce: "n1", fingerprint: "f1", node: "https://a/?cost=5", advert: "a1"}
	for name, test := range map[string]struct {
		texts []string
		want  record
	}{
		"all, any order": {[]string{"a=a1", "n=n1", "node=https://a/?cost=5", "fp=f1"}, full},
		"round trip":     {full.txt(), full},
		"case of keys":   {[]string{"N=n1", "FP=f1"}, record{nonce: "n1", fingerprint: "f1"}},
		"first counts":   {[]string{"n=n1", "N=n2", "n=n3"}, record{nonce: "n1"}},
		"others":         {[]string{"", "=", "x=1", "nonce=2", "n"}, record{}},
		"value with =":   {[]string{"node=https://a/?cost=1=2"}, record{node: "https://a/?cost=1=2"}},
	} {
		var got record
		got.readTXT(test.texts)
		if diff := cmp.Diff(test.want, got, unexported); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := (&record{nonce: "x"}).txt(); len(got) != 1 {
		t.Errorf("absent keys are sent: %q", got)
	}
}

func TestCheckRecord(t *testing.T) {
	good := record{port: 1, nonce: strings.Repeat("0", 32), fingerprint: strings.Repeat("a", 64)}
	for name, test := range map[string]struct {
		change func(*record)
		want   error
	}{
		"good":             {func(*record) {}, nil},
		"with node":        {func(r *record) { r.node = "https://a/" }, nil},
		"node alone":       {func(r *record) { r.node, r.fingerprint = "https://a/", "" }, nil},
		"neither":          {func(r *record) { r.fingerprint = "" }, errNoTrust},
		"no port":          {func(r *record) { r.port = 0 }, errPort},
		"no nonce":         {func(r *record) { r.nonce = "" }, errNonce},
		"nonce is a path":  {func(r *record) { r.nonce = "../../../../../../../../../../aaa" }, errNonce},
		"short pin":        {func(r *record) { r.fingerprint = "ab" }, errFingerprint},
		"upper case pin":   {func(r *record) { r.fingerprint = strings.Repeat("A", 64) }, errFingerprint},
		"node is no URL":   {func(r *record) { r.node = "us-west" }, errNode},
		"node too long":    {func(r *record) { r.node = "https://" + strings.Repeat("a", 250) }, errNode},
		"node with a user": {func(r *record) { r.node = "https://u:p@a/" }, errNode},
		"cost no number":   {func(r *record) { r.node = "https://a/?cost=x" }, errNode},
		"cost negative":    {func(r *record) { r.node = "https://a/?cost=-1" }, errNode},
		"cost too large":   {func(r *record) { r.node = "https://a/?cost=4611686018427387904" }, errNode},
		"two costs":        {func(r *record) { r.node = "https://a/?cost=1&cost=2" }, errNode},
	} {
		r := good
		test.change(&r)
		if err := r.check(); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNodeURL(t *testing.T) {
	for node, want := range map[string]struct {
		address string
		cost    *uint64
	}{
		"https://a/":                          {"https://a/", nil},
		"https://a:4443/x/?cost=7":            {"https://a:4443/x/", new(uint64(7))},
		"https://a/?jwt=SECRET&cost=0#f":      {"https://a/", new(uint64(0))},
		"moqt://a/?jwt=x":                     {"moqt://a/", nil},
		"https://a/?cost=4611686018427387903": {"https://a/", new(uint64(1<<62 - 1))},
	} {
		address, c, err := (&record{node: node}).nodeURL()
		if err != nil || address != want.address || !cmp.Equal(c, want.cost) {
			t.Errorf("%s: %s, %v, %v", node, address, c, err)
		}
	}
}

func TestCheckNode(t *testing.T) {
	for node, ok := range map[string]bool{
		"": true, "https://a/": true, "https://a/?cost=5": true, "https://a/?jwt=x": false, "https://a/?cost=5&x=1": false,
		"https://a/#f": false, "https://u@a/": false, "a": false, "https://" + strings.Repeat("a", 250) + "/": false,
		"https://a/?": false, "https://a/?cost=05": false,
	} {
		if err := CheckNode(node); (err == nil) != ok {
			t.Errorf("%q: %v", node, err)
		}
	}
}

func TestCheckApp(t *testing.T) {
	for app, ok := range map[string]bool{
		"default": true, "rack-7": true, "0": true, strings.Repeat("a", 62): true,
		"": false, strings.Repeat("a", 63): false, "Rack": false, "a.b": false, "a_b": false, "a b": false, "ä": false,
	} {
		if err := CheckApp(app); (err == nil) != ok {
			t.Errorf("%q: %v", app, err)
		}
	}
}

func TestEscape(t *testing.T) {
	for escaped, plain := range map[string]string{
		"": "", "fp=ab": "fp=ab", `a\\b`: `a\b`, `a\"b`: `a"b`, `\065\066`: "AB", `\255`: "\xff", `a\`: `a\`, `\06`: "06",
	} {
		if got := unescapeText(escaped); got != plain {
			t.Errorf("%s: %q", escaped, got)
		}
	}
	for _, plain := range []string{`a\b"c`, `\065`, "plain"} {
		if got := unescape(escape([]string{plain}))[0]; got != plain {
			t.Errorf("%q comes back as %q", plain, got)
		}
	}
}
