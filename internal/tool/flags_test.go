package tool

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// cli is what main makes of the commands.
type cli struct {
	Pub       Pub       `cmd:"" help:"Publish."`
	Sub       Sub       `cmd:"" help:"Subscribe."`
	Announced Announced `cmd:"" help:"List announcements."`
	Fetch     Fetch     `cmd:"" help:"Fetch a group."`
}

func parse(t *testing.T, args ...string) (*cli, error) {
	t.Helper()
	var c cli
	k, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.Parse(args)
	return &c, err
}

func TestFlags(t *testing.T) {
	c, err := parse(t, "pub", "https://h/", "demo", "--rate", "0.5", "--max-age=1m", "--start", "clock", "--seconds", "1.5", "--hash", "ab", "--hash", "cd")
	if err != nil {
		t.Fatal(err)
	}
	p := c.Pub
	if p.URL != "https://h/" || p.Path != "demo" || p.Track != "video" || *p.Rate != 0.5 || p.Size != 4096 || p.Group != 60 ||
		p.MaxAge != time.Minute || p.Start != "clock" || p.Seconds != 1.5 || len(p.Hash) != 2 || p.Broadcasts != 1 {
		t.Errorf("%+v", p)
	}
	c, err = parse(t, "sub", "https://h/", "demo", "--start=7", "--viewers", "50", "--output", "-", "--format=js")
	if err != nil {
		t.Fatal(err)
	}
	s := c.Sub
	if *s.Start != 7 || s.Viewers != 50 || s.Output != "-" || s.Format != "js" || s.MaxAge != 30*time.Second || s.Wait != 10*time.Second {
		t.Errorf("%+v", s)
	}
	if c, err = parse(t, "sub", "https://h/", "demo"); err != nil || c.Sub.Start != nil || c.Sub.Viewers != 1 {
		t.Errorf("%+v, %v", c.Sub, err)
	}
	if c, err = parse(t, "announced", "https://h/"); err != nil || c.Announced.Prefix != "" {
		t.Errorf("%+v, %v", c.Announced, err)
	}
	if c, err = parse(t, "fetch", "moqt://h", "demo", "video", "18446744073709551615", "--frame", "3"); err != nil || c.Fetch.Group != 1<<64-1 || c.Fetch.Frame != 3 {
		t.Errorf("%+v, %v", c.Fetch, err)
	}
	for _, bad := range []string{"pub", "pub u", "pub u p --rate x", "pub u p --nope", "pub u p --format raw", "fetch u p t -- -1", "sub u p --max-age 5"} {
		if _, err := parse(t, strings.Fields(bad)...); err == nil {
			t.Errorf("%q is taken", bad)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than a line: %v", bad, err)
		}
	}
}

// TestRefusedFlags runs commands with values that make no sense: each ends before it dials, with one line.
func TestRefusedFlags(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"pub moqt://h p --rate -1", "--rate"},
		{"pub moqt://h p --group 0", "--group"},
		{"pub moqt://h p --group 9000", "--group"},
		{"pub moqt://h p --size 99999999", "--size"},
		{"pub moqt://h p --size 1048576 --group 64", "--size times --group"},
		{"pub moqt://h p --broadcasts 0", "--broadcasts"},
		{"pub moqt://h p --broadcasts 2 --stdin", "--stdin"},
		{"pub moqt://h p --start yesterday", "--start"},
		{"pub moqt://h p --start clock --rate 0", "--start clock"},
		{"pub moqt://h p --hop 9223372036854775807", "--hop"},
		{"pub moqt://h p --version lite-99", "lite-99"},
		{"pub moqt://h p --hash zz", "--hash"},
		{"pub moqt://h p --root /nowhere.pem", "--root"},
		{"sub moqt://h p --viewers 0", "--viewers"},
		{"sub moqt://h p --viewers 2 --output x", "--output"},
		{"sub moqt://h p --format flac", "flac"},
		{"sub moqt://h p --output /nowhere/x", "--output"},
		{"announced ://", "URL"},
		{"announced host:4443", "URL"},
		{"fetch https:///path demo video 1", "URL"},
		{"sub ftp://h p --wait 1s", "ftp"},
		{"announced https://user:SECRET@h:notaport/SECRET?jwt=SECRET", "URL"},
	} {
		var c cli
		out := &strings.Builder{}
		streams := &Streams{In: strings.NewReader(""), Out: out, Err: out}
		k, err := kong.New(&c, kong.BindTo(t.Context(), (*context.Context)(nil)), kong.Bind(streams))
		if err != nil {
			t.Fatal(err)
		}
		ctx, err := k.Parse(strings.Fields(tc.args))
		if err == nil {
			err = ctx.Run()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", tc.args, err)
		}
		if err != nil && strings.Contains(err.Error()+out.String(), "SECRET") {
			t.Errorf("%s: tells a secret: %v", tc.args, err)
		}
	}
}

func TestStart(t *testing.T) {
	now := time.Unix(1_700_000_000, 700_000_000)
	for _, tc := range []struct {
		args  string
		first uint64
		begin time.Time
	}{
		{"pub u p", 1_700_000_000_700_000, time.Time{}},
		{"pub u p --start now --stdin", 1_700_000_000_700_000, time.Time{}},
		{"pub u p --stdin", 0, time.Time{}},
		{"pub u p --format js", 0, time.Time{}},
		{"pub u p --start 12", 12, time.Time{}},
		{"pub u p --start clock --rate 10 --group 10", 1_700_000_001, time.Unix(1_700_000_001, 0)},
		{"pub u p --start clock --rate 10 --datagrams", 17_000_000_008, time.Unix(1_700_000_000, 800_000_000)},
	} {
		c, err := parse(t, strings.Fields(tc.args)...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Pub.plan()
		if err != nil {
			t.Fatal(err)
		}
		p.first, p.begin = 0, time.Time{}
		if err := c.Pub.start(p, now); err != nil || p.first != tc.first || !p.begin.Equal(tc.begin) {
			t.Errorf("%s: group %d at %v, %v", tc.args, p.first, p.begin, err)
		}
	}
}
