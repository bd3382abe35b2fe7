// Command moqmesh is a MoQ relay and the tools to try it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"github.com/alecthomas/kong"

	bench "github.com/moqmesh/moqmesh/bench/command"
	"github.com/moqmesh/moqmesh/internal/look"
	"github.com/moqmesh/moqmesh/internal/tool"
)

// commands are the subcommands, in the order of the help. The relay parses its own flags: there is one for every key
// of the file.
type commands struct {
	Relay     relayCommand   `cmd:"" passthrough:"" help:"Run a relay as FILE.toml, the environment and the flags say. Without any subcommand: the development relay on localhost:4443."`
	Pub       tool.Pub       `cmd:"" help:"Publish test media, or what comes on standard input."`
	Sub       tool.Sub       `cmd:"" help:"Watch a track and check every frame of it."`
	Announced tool.Announced `cmd:"" help:"List what a relay announces, as it changes."`
	Fetch     tool.Fetch     `cmd:"" help:"Print one group of a track."`
	Bench     bench.Command  `cmd:"" help:"Load relays, ours or others, and measure what they deliver and what that costs."`
	Status    look.Status    `cmd:"" help:"Show how a running relay fares."`
	Top       look.Top       `cmd:"" help:"The same again and again, with rates."`
	Check     checkCommand   `cmd:"" passthrough:"" help:"Check FILE.toml and flags as the relay would, without starting one."`
	Auth      authCommand    `cmd:"" help:"Keys and tokens, an auth server, and the sessions of a running relay."`
	Version   versionCommand `cmd:"" help:"Print the version."`
}

// relayCommand passes its arguments on.
type relayCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" help:"FILE.toml and flags; 'moqmesh relay --help' lists them."`
}

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run does what the arguments say and returns the exit status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return exitStatus(dispatch(args, stdin, stdout, stderr), stderr)
}

// exitStatus is 0, or after one message on stderr that of the error, which is 1 where the error does not say another.
func exitStatus(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "moqmesh: %v\n", err)
	if own, ok := errors.AsType[interface {
		error
		ExitStatus() int
	}](err); ok {
		return own.ExitStatus()
	}
	return 1
}

func dispatch(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	switch {
	case len(args) == 0:
		return development(stdout, stderr)
	case args[0] == "relay":
		return configured(args[1:], stdout, stderr)
	case args[0] == "check":
		return check(args[1:], stdout)
	case args[0] == "--version":
		args = []string{"version"}
	}
	var cmds commands
	exit := -1
	parser, err := kong.New(&cmds, kong.Name("moqmesh"), kong.Description("A MoQ relay that clusters with its peers."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }),
		kong.BindTo(context.Background(), (*context.Context)(nil)), kong.UsageOnError())
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if exit >= 0 { // help was printed
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w ('moqmesh --help' lists the commands)", err)
	}
	return parsed.Run(&tool.Streams{In: stdin, Out: stdout, Err: stderr})
}

// Run is not reached: the subcommand is taken before kong sees it. It is here so that the help has it.
func (relayCommand) Run() error { return errors.ErrUnsupported }

// checkCommand passes its arguments on too.
type checkCommand struct {
	Args []string `arg:"" optional:"" passthrough:"" help:"FILE.toml and flags, as those of the relay."`
}

// Run is not reached either.
func (checkCommand) Run() error { return errors.ErrUnsupported }

// versionCommand prints what was built.
type versionCommand struct{}

// Run implements the subcommand.
func (versionCommand) Run(s *tool.Streams) error {
	_, err := fmt.Fprintln(s.Out, version())
	return err
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "moqmesh (unknown build)"
	}
	v, revision := info.Main.Version, ""
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = " " + s.Value
		}
	}
	return "moqmesh " + v + revision
}
