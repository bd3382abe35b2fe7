package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/remote"
	"github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/relay"
	"github.com/moqmesh/moqmesh/transport/tlsconf"
)

// Auth is who is let in. Exactly one of URL, Public and Local decides.
type Auth struct {
	URL    Secret           // of an auth server; empty = none
	Public auth.PublicRules // checked
	Local  *AuthLocal       // nil = none
	// Recovery admits who was granted a moment ago while nobody can be asked.
	Recovery bool
	// StaleWindow is for how long sessions stay that cannot be asked about; nil = up to the end of their grants.
	StaleWindow *time.Duration
}

// AuthLocal are the rules of an auth server within the relay.
type AuthLocal struct {
	Key    string // file
	KeyDir string
	JWKS   Secret // URL
	// Rules has everything but the keys and the logger.
	Rules serve.Config
}

// Secret is text that may hold a credential. It does not print.
type Secret string

// String hides the text.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "redacted"
}

// GoString hides it from %#v too.
func (s Secret) GoString() string { return s.String() }

// LogValue hides it from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

const localPrefix = "auth.local."

// authDraft are settings that make sense only together.
type authDraft struct {
	url, jwks               string
	window                  time.Duration
	local                   AuthLocal
	limitToken, limitRemote uint64
}

var authKeys = []*key{
	newKey("auth.url", textKind, about{
		example: `"https://auth.example.com/moq"`,
		doc:     "Address of an auth server, which is asked about every session: https, http to a loopback address, or unix:///path. Over https, `connect.tls` says whom to trust and what to present.",
	}, func(d *draft) *string { return &d.auth.url }, checkURL),
	newKey("auth.public", patternsKind, about{
		example: `["anon/**"]`,
		needed:  true,
		doc:     "What anybody may publish and subscribe to. Patterns: `*` is one segment, `**` any number; `anon/**` is everything at and below anon. Whoever presents a token is refused.",
	}, func(d *draft) *[]string { return &d.Auth.Public.Both }, checkPatterns),
	newKey("auth.public_publish", patternsKind, about{
		example: `["in/**"]`,
		doc:     "What anybody may publish.",
	}, func(d *draft) *[]string { return &d.Auth.Public.Publish }, checkPatterns),
	newKey("auth.public_subscribe", patternsKind, about{
		example: `["out/**"]`,
		doc:     "What anybody may subscribe to.",
	}, func(d *draft) *[]string { return &d.Auth.Public.Subscribe }, checkPatterns),
	newKey("auth.recovery", boolKind, about{
		def: "true",
		doc: "While the auth server cannot be reached, let in who was granted exactly the same within the last 30s. What was refused since stays refused.",
	}, func(d *draft) *bool { return &d.Auth.Recovery }),
	newKey("auth.stale_window", durationKind, about{
		example: `"5m"`,
		doc:     "How long sessions stay beyond the time at which the auth server should have been asked about them again. Unset: up to the end of their grants, which nothing outlives.",
	}, func(d *draft) *time.Duration { return &d.auth.window }),
	newKey("auth.local.key", fileKind, about{
		example: `"/etc/moqmesh/key.jwk"`,
		doc:     "Key, or set of keys, that tokens of clients are signed with; `moqmesh auth generate` makes one. Any `auth.local` setting makes the relay decide by itself, as `moqmesh auth serve` would.",
	}, func(d *draft) *string { return &d.auth.local.Key }),
	newKey("auth.local.key_dir", fileKind, about{
		example: `"/etc/moqmesh/keys"`,
		doc:     "Directory of keys in place of `key`: the file x.jwk verifies tokens that name the key x. Read for every token, so that keys come and go without a restart.",
	}, func(d *draft) *string { return &d.auth.local.KeyDir }),
	newKey("auth.local.jwks", textKind, about{
		example: `"https://id.example.com/keys"`,
		doc:     "Address of a set of public keys in place of `key`: https, or http to a loopback address.",
	}, func(d *draft) *string { return &d.auth.jwks }, checkJWKS),
	newKey("auth.local.public_publish", patternsKind, about{
		example: `["in/**"]`,
		doc:     "What clients without token and certificate may publish.",
	}, func(d *draft) *[]string { return &d.auth.local.Rules.PublicPublish }, checkPatterns),
	newKey("auth.local.public_subscribe", patternsKind, about{
		example: `["out/**"]`,
		doc:     "What clients without token and certificate may subscribe to.",
	}, func(d *draft) *[]string { return &d.auth.local.Rules.PublicSubscribe }, checkPatterns),
	newKey("auth.local.mtls_publish", patternsKind, about{
		example: `["**"]`,
		doc:     "What clients with a certificate may publish, see `listen.tls.root` and `web.https.root`.",
	}, func(d *draft) *[]string { return &d.auth.local.Rules.MTLSPublish }, checkPatterns),
	newKey("auth.local.mtls_subscribe", patternsKind, about{
		example: `["**"]`,
		doc:     "What clients with a certificate may subscribe to.",
	}, func(d *draft) *[]string { return &d.auth.local.Rules.MTLSSubscribe }, checkPatterns),
	newKey("auth.local.mtls_peer", boolKind, about{
		example: "true",
		doc:     "Sessions with a certificate are those of relays of the cluster.",
	}, func(d *draft) *bool { return &d.auth.local.Rules.MTLSPeer }),
	newKey("auth.local.tier", textKind, about{
		example: `"gold"`,
		doc:     "Label of all sessions in statistics.",
	}, func(d *draft) *string { return &d.auth.local.Rules.Tier }),
	newKey("auth.local.revalidate", durationKind, about{
		example: `"1m"`,
		doc:     "How often every session is decided about again; needs `expires`. Unset: never.",
	}, func(d *draft) *time.Duration { return &d.auth.local.Rules.Revalidate }, positive),
	newKey("auth.local.expires", durationKind, about{
		example: `"1h"`,
		doc:     "How long sessions last whose token or certificate says nothing of it. Unset: for ever.",
	}, func(d *draft) *time.Duration { return &d.auth.local.Rules.Expires }, positive),
	newKey("auth.local.limit_token", numberKind, about{
		example: "10",
		doc:     "Most sessions with one token; needs `revalidate`. Unset: no limit.",
	}, func(d *draft) *uint64 { return &d.auth.limitToken }, between(uint64(1), 1<<30)),
	newKey("auth.local.limit_remote", numberKind, about{
		example: "100",
		doc:     "Most sessions from one address, or IPv6 network of 64 bits; needs `revalidate`. Unset: no limit.",
	}, func(d *draft) *uint64 { return &d.auth.limitRemote }, between(uint64(1), 1<<30)),
}

func checkURL(address string) error {
	if address == "" {
		return nil
	}
	return remote.Check(address)
}

func checkJWKS(address string) error {
	if address == "" {
		return nil
	}
	return token.CheckURL(address)
}

// authRules demands that exactly one decider is there, and that its parts go together.
func (l *loader) authRules() {
	l.Auth.URL = Secret(l.auth.url)
	if l.has("auth.stale_window") {
		l.Auth.StaleWindow = &l.auth.window
	}
	local := l.localKey()
	public := len(l.Auth.Public.Both)+len(l.Auth.Public.Publish)+len(l.Auth.Public.Subscribe) > 0
	n := 0
	for _, set := range []bool{l.auth.url != "", public, local != ""} {
		if set {
			n++
		}
	}
	switch {
	case n == 0:
		l.fail("nobody could connect: give auth.url, public rules or [auth.local]", "auth.public", "auth.public_publish", "auth.public_subscribe", "auth.url")
	case n > 1:
		l.fail("only one of auth.url, public rules and [auth.local] can decide", "auth.url", local, "auth.public", "auth.public_publish", "auth.public_subscribe")
	case local != "":
		l.localRules(local)
	case public:
		l.publicRules()
	}
}

// localKey is the first key of [auth.local] that is set; empty if none is.
func (l *loader) localKey() string {
	for _, k := range authKeys {
		if strings.HasPrefix(k.name, localPrefix) && l.has(k.name) {
			return k.name
		}
	}
	return ""
}

func (l *loader) publicRules() {
	if _, err := auth.NewPublic(l.Auth.Public); err != nil {
		l.fail(err.Error(), "auth.public", "auth.public_publish", "auth.public_subscribe")
	}
	for _, name := range []string{"listen.tls.root", "web.https.root"} {
		if len(*l.clientRoots(name)) > 0 {
			l.fail("client certificates are asked for, but public rules do not look at them: use auth.url or [auth.local]", name)
		}
	}
	for _, name := range []string{"auth.recovery", "auth.stale_window"} {
		if l.has(name) && (name != "auth.recovery" || !l.Auth.Recovery) {
			l.warn(l.origins[name].source, name, "without effect on public rules, which never end")
		}
	}
}

func (l *loader) clientRoots(name string) *[]string {
	if name == "listen.tls.root" {
		return &l.Listen.TLS.Roots
	}
	return &l.Web.HTTPSRoots
}

// localRules checks what the rules would, before any file is opened.
func (l *loader) localRules(first string) {
	local := l.auth.local
	local.JWKS = Secret(l.auth.jwks)
	local.Rules.LimitToken, local.Rules.LimitRemote = int(l.auth.limitToken), int(l.auth.limitRemote)
	keys := 0
	for _, from := range []string{local.Key, local.KeyDir, string(local.JWKS)} {
		if from != "" {
			keys++
		}
	}
	if keys > 1 {
		l.fail("only one of key, key_dir and jwks can have the keys", "auth.local.key_dir", "auth.local.jwks", "auth.local.key")
	}
	l.Auth.Local = &local
	check := local.Rules
	if keys > 0 {
		check.Keys = new(token.Set)
	}
	_, err := serve.New(check)
	for _, known := range []struct {
		err  error
		name string
	}{
		{serve.ErrExpires, "auth.local.revalidate"},
		{serve.ErrLimits, "auth.local.limit_token"},
		{serve.ErrCertificates, "auth.local.mtls_peer"},
	} {
		if errors.Is(err, known.err) {
			l.fail(err.Error(), known.name, "auth.local.limit_remote")
			return
		}
	}
	if err != nil {
		l.fail(err.Error(), first)
	}
	if len(check.MTLSPublish)+len(check.MTLSSubscribe) > 0 && len(l.Listen.TLS.Roots)+len(l.Web.HTTPSRoots) == 0 {
		l.warn("", "auth.local", "rules for client certificates are without effect, since neither listen.tls.root nor web.https.root is set")
	}
}

// authorizer builds the one that decides.
func (c *Config) authorizer(logger *slog.Logger) (auth.Authorizer, error) {
	a := &c.Auth
	switch {
	case a.URL != "":
		conf, err := c.Connect.TLS.authServer(logger)
		if err != nil {
			return nil, err
		}
		client, err := remote.New(remote.Config{URL: string(a.URL), TLS: conf, Logger: logger})
		if err != nil {
			return nil, fmt.Errorf("auth.url: %w", err)
		}
		return client, nil
	case a.Local != nil:
		rules, err := a.Local.open(logger)
		if err != nil {
			return nil, fmt.Errorf("auth.local: %w", err)
		}
		return rules, nil
	}
	public, err := auth.NewPublic(a.Public)
	if err != nil {
		return nil, fmt.Errorf("auth.public: %w", err)
	}
	return public, nil
}

// lease is how leases are kept.
func (a *Auth) lease() relay.Lease {
	return relay.Lease{NoRecovery: !a.Recovery, StaleWindow: a.StaleWindow}
}

// open reads the keys.
func (a *AuthLocal) open(logger *slog.Logger) (*serve.Rules, error) {
	cfg := a.Rules
	cfg.Logger = logger
	var err error
	switch {
	case a.Key != "":
		cfg.Keys, err = token.Open(a.Key)
	case a.KeyDir != "":
		cfg.Keys, err = token.OpenDir(a.KeyDir)
	case a.JWKS != "":
		cfg.Keys, err = token.NewRemote(string(a.JWKS), nil, logger)
	}
	if err != nil {
		return nil, err
	}
	return serve.New(cfg)
}

// authServer says whom an auth server may be signed by, and what is presented to it. What makes dials of peers lenient
// (fingerprints, insecure, host_name) is for peers only. Files are read again when they change.
func (c ClientTLS) authServer(logger *slog.Logger) (func() *tls.Config, error) {
	c.Fingerprints, c.Insecure, c.HostName = nil, false, ""
	trust, err := c.client(logger)
	if err != nil {
		return nil, err
	}
	return func() *tls.Config {
		conf := trust.TLS("", nil) // the host is that of each request
		conf.MinVersion = tls.VersionTLS12
		return conf
	}, nil
}

// clientCAs opens the files of CAs for client certificates; nil if there are none.
func clientCAs(key string, files []string, logger *slog.Logger) (*tlsconf.Roots, error) {
	if len(files) == 0 {
		return nil, nil //nolint:nilnil // nil asks for no certificates
	}
	return tlsconf.OpenRoots(key, files, false, logger)
}
