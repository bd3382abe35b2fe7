package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/moqmesh/moqmesh/cluster"
)

func TestCheckRedirect(t *testing.T) {
	const same, follow, ignore = cluster.RedirectSameHost, cluster.RedirectFollow, cluster.RedirectIgnore
	tests := map[string]struct {
		policy   cluster.Redirect
		from, to string
		want     string // URL to dial; empty = refused
	}{
		"same host":                    {same, "https://a.example/", "https://a.example:444/x", "https://a.example:444/x"},
		"same host, other case":        {same, "https://a.example/", "https://A.example/", "https://a.example/"},
		"same host, other scheme":      {same, "https://a.example/", "moqt://a.example/", "moqt://a.example/"},
		"other host":                   {same, "https://a.example/", "https://b.example/", ""},
		"sub-domain":                   {same, "https://a.example/", "https://x.a.example/", ""},
		"other host, followed":         {follow, "https://a.example/", "https://b.example/x", "https://b.example/x"},
		"ignored":                      {ignore, "https://a.example/", "https://a.example/", ""},
		"plain":                        {follow, "https://a.example/", "http://a.example/", ""},
		"plain from raw QUIC":          {follow, "moqt://a.example/", "http://a.example/", ""},
		"plain from plain":             {same, "http://a.example/", "http://a.example/x", "http://a.example/x"},
		"encrypted from plain":         {same, "http://a.example/", "https://a.example/", "https://a.example/"},
		"loopback":                     {follow, "https://a.example/", "https://127.0.0.1/", ""},
		"loopback by name":             {follow, "https://a.example/", "https://localhost/", ""},
		"loopback, IPv6":               {follow, "https://a.example/", "https://[::1]/", ""},
		"loopback in IPv6":             {follow, "https://a.example/", "https://[::ffff:127.0.0.1]/", ""},
		"loopback, root of DNS":        {follow, "https://a.example/", "https://localhost./", ""},
		"loopback, short":              {follow, "https://a.example/", "https://127.1/", ""},
		"loopback, one number":         {follow, "https://a.example/", "https://2130706433/", ""},
		"loopback, hexadecimal":        {follow, "https://a.example/", "https://0x7f.0.0.0x1/", ""},
		"private":                      {follow, "https://a.example/", "https://10.1.2.3/", ""},
		"private, IPv6":                {follow, "https://a.example/", "https://[fd00::1]/", ""},
		"link-local":                   {follow, "https://192.0.2.1/", "https://169.254.169.254/", ""},
		"shared space":                 {follow, "https://a.example/", "https://100.64.0.1/", ""},
		"unspecified":                  {follow, "https://a.example/", "https://0.0.0.0/", ""},
		"public address":               {follow, "https://a.example/", "https://192.0.2.1/", "https://192.0.2.1/"},
		"local to local":               {follow, "https://10.1.2.3/", "https://10.1.2.4/", "https://10.1.2.4/"},
		"relative":                     {follow, "https://a.example/", "/x", ""},
		"no URL":                       {follow, "https://a.example/", "a.example", ""},
		"unknown scheme":               {follow, "https://a.example/", "ftp://a.example/", ""},
		"not dialable":                 {follow, "https://a.example/", "tcp://a.example:1/", ""},
		"plain WebSocket":              {follow, "https://a.example/", "ws://a.example/", ""},
		"plain from WebSocket":         {follow, "wss://a.example/", "ws://a.example/", ""},
		"encrypted WebSocket":          {same, "https://a.example/", "wss://a.example/", "wss://a.example/"},
		"space":                        {follow, "https://a.example/", "https://a.example/ x", ""},
		"price is ours":                {same, "https://a.example/?cost=7", "https://a.example/x?cost=0", "https://a.example/x"},
		"credential goes along":        {same, "https://a.example/?jwt=old&jwt=SECRET", "https://a.example/x", "https://a.example/x?jwt=SECRET"},
		"but not to another host":      {follow, "https://a.example/?jwt=SECRET", "https://b.example/x", "https://b.example/x"},
		"nor in place of the peer's":   {same, "https://a.example/?jwt=SECRET", "https://a.example/x?jwt=new", "https://a.example/x?jwt=new"},
		"refusal with credential":      {same, "https://a.example/?jwt=SECRET", "https://b.example/x?jwt=SECRET", ""},
		"malformed with credential":    {same, "https://a.example/?jwt=SECRET", "https://%zz/?jwt=SECRET", ""},
		"credential in the wrong part": {same, "https://a.example/", "https://SECRET@b.example/SECRET", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			from := entry(t, tt.from)
			got, err := cluster.CheckRedirect(tt.policy, from, tt.to)
			if tt.want == "" {
				if !errors.Is(err, cluster.ErrRedirect) || strings.Contains(err.Error(), "SECRET") {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.URL().String() != tt.want {
				t.Errorf("dials %s, want %s", got.URL(), tt.want)
			}
			price, ok := got.Price()
			fromPrice, fromOK := from.Price()
			if got.Key() != from.Key() || price != fromPrice || ok != fromOK {
				t.Errorf("key %s or price %d, %v changed", got.Key(), price, ok)
			}
		})
	}
}
