package webtransport

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/moqmesh/moqmesh/transport"
)

func TestReadCapsules(t *testing.T) {
	longReason := strings.Repeat("é", 512) // the longest there is
	for _, test := range []struct {
		name string
		in   []byte
		end  error // after in
		want transport.SessionError
	}{
		{"close", appendClose(nil, 4242, "bye"), io.EOF, transport.SessionError{Code: 4242, Reason: "bye", Remote: true}},
		{"close without a reason", appendClose(nil, 1, ""), io.EOF, transport.SessionError{Code: 1, Remote: true}},
		{"longest reason", appendClose(nil, 1, longReason), io.EOF, transport.SessionError{Code: 1, Reason: longReason, Remote: true}},
		{"longer reason", appendClose(nil, 1, longReason+"x"), io.EOF, transport.SessionError{Code: 1, Reason: longReason, Remote: true}},
		{"after others", append([]byte("\x02\x03abc\x57\x00\x00\x80\x00\x2a\x2a\x01x"), appendClose(nil, 9, "")...), io.EOF, transport.SessionError{Code: 9, Remote: true}},
		{"FIN only", nil, io.EOF, transport.SessionError{Remote: true}},
		{"FIN after others", []byte("\x02\x03abc"), io.EOF, transport.SessionError{Remote: true}},
		{"FIN within the head", []byte("\x68"), io.EOF, transport.SessionError{Transport: io.ErrUnexpectedEOF}},
		{"FIN within the code", appendClose(nil, 1, "")[:5], io.EOF, transport.SessionError{Transport: io.ErrUnexpectedEOF}},
		{"FIN within the reason", appendClose(nil, 1, "bye")[:9], io.EOF, transport.SessionError{Transport: io.ErrUnexpectedEOF}},
		{"code missing", []byte("\x68\x43\x02\x00\x00"), io.EOF, transport.SessionError{Transport: io.ErrUnexpectedEOF}},
		{"endless other", []byte("\x02\xff\xff\xff\xff\xff\xff\xff\xff"), io.EOF, transport.SessionError{Transport: io.ErrUnexpectedEOF}},
		{"reset", nil, &http3.Error{Remote: true, ErrorCode: 1}, transport.SessionError{Remote: true, Transport: cmpopts.AnyError}},
		{"connection closed", nil, &quic.ApplicationError{Remote: true, ErrorCode: 0x52e4a40fa8db + 7, ErrorMessage: "x"}, transport.SessionError{Code: 7, Reason: "x", Remote: true}},
		{"connection closed cleanly", nil, &quic.ApplicationError{Remote: true, ErrorCode: 0x100}, transport.SessionError{Remote: true}},
		{"connection closed for a reason", nil, &quic.ApplicationError{Remote: true, ErrorCode: 0x103}, transport.SessionError{Remote: true, Transport: cmpopts.AnyError}},
		{"connection lost", nil, &quic.IdleTimeoutError{}, transport.SessionError{Transport: cmpopts.AnyError}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := readCapsules(io.MultiReader(bytes.NewReader(test.in), errReader{test.end}))
			if diff := cmp.Diff(test.want, *got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func FuzzReadCapsules(f *testing.F) {
	f.Add(appendClose([]byte("\x02\x03abc"), 77, "reason"))
	f.Add([]byte("\x68\x43\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		end := readCapsules(bytes.NewReader(in))
		if end == nil || len(end.Reason) > maxReason {
			t.Fatalf("%+v", end)
		}
		if end.Transport != nil && !errors.Is(end.Transport, io.ErrUnexpectedEOF) && !errors.Is(end.Transport, io.EOF) {
			t.Fatalf("unexpected error: %v", end.Transport)
		}
	})
}

func TestChoose(t *testing.T) {
	ours := []string{"moq-lite-06", "moql"}
	for _, test := range []struct {
		header []string
		want   string
	}{
		{[]string{`"moql", "moq-lite-06"`}, "moql"},
		{[]string{`"moqt-17"`, `"moq-lite-06";q=1`}, "moq-lite-06"},
		{[]string{`moqt-17, moql`}, "moql"}, // tokens, as in old drafts
		{[]string{`("moql"), 7, "moq-lite-06"`}, "moq-lite-06"},
		{[]string{`"moqt-17"`}, ""},
		{[]string{`"moql`}, ""},
		{[]string{""}, ""},
		{nil, ""},
	} {
		if got := choose(test.header, ours); got != test.want {
			t.Errorf("%q: chose %q, want %q", test.header, got, test.want)
		}
	}
}
