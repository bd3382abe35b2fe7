package peerlist

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/moqmesh/moqmesh/cluster"
)

// Errors of ParseSource. They quote nothing of the address: it may hold a credential.
var (
	ErrScheme = errors.New("a peer list is behind http://, https:// or file://, or a path")
	ErrURL    = errors.New("not a valid URL")
	ErrEmpty  = errors.New("no address is given")
)

// Source is where a list is. The zero Source is none. Printing one shows scheme and host, or the path of the file.
type Source struct {
	url  *url.URL // http or https
	file string
}

// ParseSource reads an http, https or file URL, or a path (C15).
func ParseSource(text string) (Source, error) {
	if text == "" {
		return Source{}, ErrEmpty
	}
	if !strings.Contains(text, "://") {
		return Source{file: text}, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return Source{}, ErrURL
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		if u.Hostname() == "" {
			return Source{}, ErrURL
		}
		u.Fragment, u.RawFragment = "", ""
		return Source{url: u}, nil
	case "file":
		if u.Host != "" && u.Host != "localhost" || u.Path == "" || u.RawQuery != "" {
			return Source{}, ErrURL
		}
		return Source{file: filepath.FromSlash(u.Path)}, nil
	default:
		return Source{}, ErrScheme
	}
}

// IsZero reports whether there is no list.
func (s Source) IsZero() bool { return s.url == nil && s.file == "" }

// Secure reports whether the list comes over TLS, so that somebody must be trusted to have it.
func (s Source) Secure() bool { return s.url != nil && s.url.Scheme == "https" }

func (s Source) String() string {
	if s.url != nil {
		return s.url.Scheme + "://" + s.url.Host
	}
	return s.file
}

// request is the URL to ask, with our own address as a parameter (C16).
func (s Source) request(self cluster.Node) string {
	u := *s.url
	if !self.IsZero() {
		own := "node=" + url.QueryEscape(self.Key())
		if u.RawQuery != "" {
			own = u.RawQuery + "&" + own
		}
		u.RawQuery = own
	}
	return u.String()
}
