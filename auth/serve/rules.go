package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/moqmesh/moqmesh/auth"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/paths"
)

// Errors of a configuration.
var (
	// ErrNobody says that no rule lets anybody in.
	ErrNobody = errors.New("no key, public rule or certificate rule is given, so nobody could connect")
	// ErrExpires says that asking again needs grants that end.
	ErrExpires = errors.New("revalidate needs expires")
	// ErrLimits says that counting sessions needs to hear of them now and then.
	ErrLimits = errors.New("limits need revalidate")
	// ErrNegative says that a duration or limit is below nothing.
	ErrNegative = errors.New("durations and limits cannot be negative")
	// ErrCertificates says that peers are to be known by certificates that admit nobody.
	ErrCertificates = errors.New("certificates make peers only where a rule admits them")
)

// Config is what New takes. Patterns are rooted at "/" and need a wildcard, as those of auth.Public.
type Config struct {
	Keys token.Keys // nil: tokens are refused

	PublicPublish, PublicSubscribe []string // for clients without token and certificate
	MTLSPublish, MTLSSubscribe     []string // for clients with a certificate
	// MTLSPeer makes sessions with a certificate those of cluster peers.
	MTLSPeer bool

	Tier string // of every grant
	// Revalidate is how often relays ask again; 0 = never. It needs Expires.
	Revalidate time.Duration
	// Expires bounds grants that have no end of their own; 0 = they have none.
	Expires time.Duration
	// LimitToken and LimitRemote are the most live sessions of one token and of one address; 0 = no limit. They need
	// Revalidate.
	LimitToken, LimitRemote int

	Logger *slog.Logger // nil discards
}

// Rules decide. They are safe for concurrent use.
type Rules struct {
	cfg          Config
	public, mtls *auth.Public // nil = nobody
	limits       *limits      // nil = none
	log          *slog.Logger
}

var _ auth.Leaser = (*Rules)(nil)

// New checks a configuration. It fails with one of the errors above or an *auth.RuleError.
func New(cfg Config) (*Rules, error) {
	r := &Rules{cfg: cfg, log: cfg.Logger}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.public, err = rules(cfg.PublicPublish, cfg.PublicSubscribe); err != nil {
		return nil, err
	}
	if r.mtls, err = rules(cfg.MTLSPublish, cfg.MTLSSubscribe); err != nil {
		return nil, err
	}
	switch {
	case cfg.Revalidate < 0 || cfg.Expires < 0 || cfg.LimitToken < 0 || cfg.LimitRemote < 0:
		return nil, ErrNegative
	case cfg.Keys == nil && r.public == nil && r.mtls == nil:
		return nil, ErrNobody
	case cfg.Revalidate > 0 && cfg.Expires == 0:
		return nil, ErrExpires
	case cfg.LimitToken+cfg.LimitRemote > 0 && cfg.Revalidate == 0:
		return nil, ErrLimits
	case cfg.MTLSPeer && r.mtls == nil:
		return nil, ErrCertificates
	}
	if cfg.LimitToken+cfg.LimitRemote > 0 {
		r.limits = newLimits(cfg.LimitToken, cfg.LimitRemote, 2*cfg.Revalidate)
	}
	return r, nil
}

// rules are nil where there are none.
func rules(publish, subscribe []string) (*auth.Public, error) {
	p, err := auth.NewPublic(auth.PublicRules{Publish: publish, Subscribe: subscribe})
	if errors.Is(err, auth.ErrNoRules) {
		return nil, nil //nolint:nilnil // nil are no rules
	}
	return p, err
}

// refuse is a refusal as the reference server has it: 403, with the reason.
func refuse(format string, args ...any) error {
	return &auth.Error{Status: http.StatusForbidden, Reason: fmt.Sprintf(format, args...)}
}

// Authorize implements auth.Authorizer. A credential that is not good never falls through to a weaker rule.
func (r *Rules) Authorize(ctx context.Context, q auth.Request) (auth.Grant, error) {
	now := time.Now()
	text, err := credential(q)
	if err != nil {
		return auth.Grant{}, err
	}
	var g auth.Grant
	switch {
	case text != "" && q.TLS != nil:
		return auth.Grant{}, refuse("a token together with a certificate")
	case text != "":
		g, err = r.byToken(ctx, text, q, now)
	case q.TLS != nil:
		g, err = r.byCertificate(ctx, q)
	default:
		g, err = r.byNothing(ctx, q)
	}
	if err != nil {
		return auth.Grant{}, err
	}
	g.Tier, g.Revalidate = r.cfg.Tier, r.cfg.Revalidate
	if g.Expires.IsZero() && r.cfg.Expires > 0 {
		g.Expires = now.Add(r.cfg.Expires)
	}
	if r.limits != nil {
		if err := r.limits.enter(now, q, text); err != nil {
			return auth.Grant{}, err
		}
	}
	return g, nil
}

// End implements auth.Leaser.
func (r *Rules) End(_ context.Context, q auth.Request, _ auth.End) {
	if r.limits != nil {
		r.limits.leave(q.ID)
	}
}

// credential is the one token that a request presents; empty if there is none.
func credential(q auth.Request) (string, error) {
	text := q.Token()
	setup := q.SetupToken
	switch {
	case setup == nil:
		return text, nil
	case setup.Kind != 0:
		return "", refuse("a token of type %d, which is not supported", setup.Kind)
	case len(setup.Value) == 0:
		return text, nil
	case text != "" && text != string(setup.Value):
		return "", refuse("two different tokens")
	}
	return string(setup.Value), nil
}

func (r *Rules) byToken(ctx context.Context, text string, q auth.Request, now time.Time) (auth.Grant, error) {
	if r.cfg.Keys == nil {
		return auth.Grant{}, refuse("a token, but no keys are configured")
	}
	claims, err := token.Verify(ctx, text, r.cfg.Keys, now)
	if errors.Is(err, token.ErrUnavailable) {
		r.log.Warn("a token could not be verified", "error", err)
		return auth.Grant{}, auth.Unavailable("%v", err)
	}
	if err != nil {
		return auth.Grant{}, refuse("%v", err)
	}
	g := auth.Grant{Expires: claims.Expires}
	if g.Root, err = paths.Clean(q.Path); err == nil {
		g.Publish, g.Subscribe, err = claims.At(g.Root)
	}
	if err != nil {
		return auth.Grant{}, refuse("token: %v", err)
	}
	return g.For(q.Role)
}

func (r *Rules) byCertificate(ctx context.Context, q auth.Request) (auth.Grant, error) {
	if r.mtls == nil {
		return auth.Grant{}, refuse("a certificate, but no rule for certificates is configured")
	}
	g, err := r.mtls.Authorize(ctx, withoutCredentials(q))
	g.Expires, g.Peer = q.TLS.Expires, r.cfg.MTLSPeer
	return g, err
}

func (r *Rules) byNothing(ctx context.Context, q auth.Request) (auth.Grant, error) {
	if r.public == nil {
		return auth.Grant{}, refuse("no token and no certificate")
	}
	return r.public.Authorize(ctx, withoutCredentials(q))
}

// withoutCredentials leaves out those that have been looked at, an empty SETUP token for one.
func withoutCredentials(q auth.Request) auth.Request {
	q.Query, q.SetupToken = "", nil
	return q
}
