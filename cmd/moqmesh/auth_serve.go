package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	authserve "github.com/moqmesh/moqmesh/auth/serve"
	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/internal/tool"
)

// authServe is an auth server.
type authServe struct {
	Listen       string `help:"Address, or unix:PATH for a socket." default:"127.0.0.1:4440" placeholder:"HOST:PORT"`
	ListenPublic bool   `help:"Allow an address that others than this machine reach. The server itself authenticates nobody."`

	Key    string `help:"Key, or set of keys, that tokens are signed with." placeholder:"FILE" xor:"keys"`
	KeyDir string `help:"Directory of keys: the file x.jwk verifies tokens that name the key x. Read for every token." placeholder:"DIR" xor:"keys"`
	JWKS   string `name:"jwks" help:"Address of a set of public keys." placeholder:"URL" xor:"keys"`

	PublicPublish   []string `help:"What clients without token and certificate may publish. Repeatable." placeholder:"PATTERN"`
	PublicSubscribe []string `help:"What clients without token and certificate may subscribe to. Repeatable." placeholder:"PATTERN"`
	MTLSPublish     []string `name:"mtls-publish" help:"What clients with a certificate may publish. Repeatable." placeholder:"PATTERN"`
	MTLSSubscribe   []string `name:"mtls-subscribe" help:"What clients with a certificate may subscribe to. Repeatable." placeholder:"PATTERN"`
	MTLSPeer        bool     `name:"mtls-peer" help:"Sessions with a certificate are those of relays of the cluster."`

	Tier        string        `help:"Label of all sessions in statistics." placeholder:"TEXT"`
	Revalidate  time.Duration `help:"How often relays ask again; needs --expires." placeholder:"DURATION"`
	Expires     time.Duration `help:"How long grants last that have no end of their own." placeholder:"DURATION"`
	LimitToken  int           `help:"Most live sessions with one token; needs --revalidate." placeholder:"N"`
	LimitRemote int           `help:"Most live sessions from one address; needs --revalidate." placeholder:"N"`
}

// Help is shown by --help.
func (authServe) Help() string {
	return "Relays ask it with auth.url. A token decides before a certificate, a certificate before public rules, and a " +
		"bad one never falls through. Patterns are rooted at /."
}

// interruptible ends with SIGINT or SIGTERM.
func interruptible() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// Run implements the subcommand.
func (c *authServe) Run(s *tool.Streams) error {
	log := newLogger(s.Err, slog.LevelInfo)
	rules, err := c.rules(log)
	if err != nil {
		return err
	}
	ln, err := c.bind()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	srv := &http.Server{
		Handler:     &authserve.Handler{Decide: rules, Logger: log},
		ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	fmt.Fprintf(s.Out, "listening on %s\n", ln.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = srv.Shutdown(end)
	if failure := <-failed; !errors.Is(failure, http.ErrServerClosed) {
		err = errors.Join(err, failure)
	}
	return err
}

func (c *authServe) rules(log *slog.Logger) (*authserve.Rules, error) {
	cfg := authserve.Config{
		PublicPublish: c.PublicPublish, PublicSubscribe: c.PublicSubscribe, MTLSPublish: c.MTLSPublish, MTLSSubscribe: c.MTLSSubscribe,
		MTLSPeer: c.MTLSPeer, Tier: c.Tier, Revalidate: c.Revalidate, Expires: c.Expires, LimitToken: c.LimitToken, LimitRemote: c.LimitRemote,
		Logger: log,
	}
	var err error
	switch {
	case c.Key != "":
		cfg.Keys, err = token.Open(c.Key)
	case c.KeyDir != "":
		cfg.Keys, err = token.OpenDir(c.KeyDir)
	case c.JWKS != "":
		cfg.Keys, err = token.NewRemote(c.JWKS, nil, log)
	}
	if err != nil {
		return nil, err
	}
	return authserve.New(cfg)
}

var errPublic = errors.New("--listen: others than this machine would reach it, and it authenticates nobody: use a loopback address or unix:PATH, or add --listen-public")

// bind opens the listener. A socket that an earlier run left behind is replaced.
func (c *authServe) bind() (net.Listener, error) {
	if path, ok := strings.CutPrefix(c.Listen, "unix:"); ok {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return nil, fmt.Errorf("--listen: %s is in use", path)
		}
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			_ = os.Remove(path) // if it fails, so does Listen
		}
		return net.Listen("unix", path)
	}
	addr, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if !addr.IP.IsLoopback() && !c.ListenPublic {
		return nil, errPublic
	}
	return net.Listen("tcp", addr.String())
}
