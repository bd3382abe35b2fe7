package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/internal/tool"
	"github.com/moqmesh/moqmesh/paths"
)

// authCommand are the subcommands about who may do what.
type authCommand struct {
	Serve      authServe      `cmd:"" help:"Run an auth server that decides by tokens, client certificates and public rules."`
	Generate   authGenerate   `cmd:"" help:"Make a key to sign and verify tokens with."`
	Sign       authSign       `cmd:"" help:"Print a token."`
	Verify     authVerify     `cmd:"" help:"Check a token and print what it says."`
	Sessions   authSessions   `cmd:"" help:"List the sessions of a running relay."`
	Revalidate authRevalidate `cmd:"" help:"Make a running relay ask its auth server about sessions now."`
}

// scopeFlags say what may be done.
type scopeFlags struct {
	Root      string   `help:"Path that the patterns are relative to." placeholder:"PATH"`
	Publish   []string `help:"What may be published, such as 'alice/**' (alice and everything below). Repeatable." placeholder:"PATTERN"`
	Subscribe []string `help:"What may be subscribed to. Repeatable." placeholder:"PATTERN"`
}

func (f *scopeFlags) given() bool { return f.Root != "" || len(f.Publish)+len(f.Subscribe) > 0 }

func (f *scopeFlags) claims() (c token.Claims, err error) {
	if c.Root, err = paths.Clean(f.Root); err == nil && strings.Contains(c.Root, "*") {
		err = paths.ErrLiteral
	}
	if err != nil {
		return c, fmt.Errorf("--root: %w", err)
	}
	if c.Publish, err = patterns(f.Publish); err != nil {
		return c, fmt.Errorf("--publish: %w", err)
	}
	if c.Subscribe, err = patterns(f.Subscribe); err != nil {
		return c, fmt.Errorf("--subscribe: %w", err)
	}
	return c, nil
}

func patterns(texts []string) (paths.Set, error) {
	clean := make([]string, len(texts))
	for i, text := range texts {
		clean[i] = strings.Trim(text, "/")
	}
	return paths.ParseSet(clean...)
}

// authGenerate makes a key.
type authGenerate struct {
	Algorithm string `help:"One of HS256 HS384 HS512 ES256 ES384 RS256 RS384 RS512 PS256 PS384 PS512 EdDSA." default:"HS256" placeholder:"ALG"`
	ID        string `name:"id" help:"Key id, 1 to 128 letters, digits, - and _. Random if left out." placeholder:"KID"`
	Out       string `help:"Write the key to this file instead of standard output." placeholder:"FILE" xor:"out"`
	OutDir    string `help:"Write the key to KID.jwk in this directory." placeholder:"DIR" xor:"out"`
	Public    string `help:"Also write the public half to this file." placeholder:"FILE" xor:"public"`
	PublicDir string `help:"Also write the public half to KID.jwk in this directory." placeholder:"DIR" xor:"public"`
	scopeFlags
}

// Help is shown by --help.
func (authGenerate) Help() string {
	return "With --root, --publish or --subscribe, no token signed with the key can grant more. Files are not overwritten."
}

// Run implements the subcommand.
func (c *authGenerate) Run(s *tool.Streams) error {
	k, err := token.Generate(c.Algorithm, c.ID)
	if err != nil {
		return err
	}
	if c.given() {
		scope, err := c.claims()
		switch {
		case err != nil:
			return err
		case scope.Publish.Empty() && scope.Subscribe.Empty():
			return token.ErrNothingGranted
		}
		k = k.Limited(scope)
	}
	if public := place(c.Public, c.PublicDir, k); public != "" {
		half, err := k.Public()
		if err != nil {
			return err
		}
		if err := half.WriteFile(public); err != nil {
			return err
		}
	}
	if out := place(c.Out, c.OutDir, k); out != "" {
		return k.WriteFile(out)
	}
	_, err = fmt.Fprintln(s.Out, k.Encode())
	return err
}

// place is where a key goes; empty for standard output.
func place(file, dir string, k *token.Key) string {
	if dir != "" {
		return filepath.Join(dir, k.ID()+".jwk")
	}
	return file
}

// authSign makes a token.
type authSign struct {
	Key     string `required:"" help:"Key to sign with." placeholder:"FILE"`
	Expires string `help:"When the token ends: unix seconds, a time such as 2030-01-02T03:04:05Z, or a duration from now such as 24h." placeholder:"TIME"`
	Issued  string `help:"When it was issued, in the same forms." placeholder:"TIME"`
	scopeFlags
}

// Run implements the subcommand.
func (c *authSign) Run(s *tool.Streams) error {
	k, err := openKey(c.Key)
	if err != nil {
		return err
	}
	claims, err := c.claims()
	if err != nil {
		return err
	}
	now := time.Now()
	if claims.Expires, err = parseTime(c.Expires, now); err != nil {
		return fmt.Errorf("--expires: %w", err)
	}
	if claims.Issued, err = parseTime(c.Issued, now); err != nil {
		return fmt.Errorf("--issued: %w", err)
	}
	text, err := k.Sign(claims)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, text)
	return err
}

func openKey(name string) (*token.Key, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	k, err := token.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return k, nil
}

// parseTime reads the forms that the flags take; nothing is the zero time.
func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n <= 0 {
			return time.Time{}, errors.New("must be after 1970")
		}
		return time.Unix(n, 0), nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither unix seconds nor a time nor a duration", text)
	}
	return t, nil
}

// authVerify checks a token.
type authVerify struct {
	Key string `required:"" help:"Key, public half or set of keys to verify with." placeholder:"FILE"`
	In  string `help:"Read the token from this file instead of standard input." placeholder:"FILE"`
}

// maxInput bounds what is read as a token, in bytes.
const maxInput = 1 << 20

// Run implements the subcommand.
func (c *authVerify) Run(s *tool.Streams) error {
	keys, err := token.Open(c.Key)
	if err != nil {
		return err
	}
	in := s.In
	if c.In != "" {
		f, err := os.Open(c.In)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxInput))
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	claims, err := token.Verify(ctx, strings.TrimSpace(string(text)), keys, time.Now())
	if err != nil {
		return err
	}
	out, err := json.Marshal(claims)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "%s\n", out)
	return err
}
