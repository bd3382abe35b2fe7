package httpcache

import (
	"net/http"
	"strings"
	"time"
)

// response is a stored response.
type response struct {
	body       []byte
	header     http.Header
	freshUntil time.Time
}

// store keeps a response, unless it forbids that (RFC 9111, 3).
func store(body []byte, h http.Header, sent, received time.Time) *response {
	if parseControl(h).noStore || strings.Contains(strings.Join(h.Values("Vary"), ","), "*") {
		return nil
	}
	s := &response{body: body, header: h}
	s.freshUntil = received.Add(freshness(h, sent, received))
	return s
}

// update refreshes a response with the header of a 304 (RFC 9111, 4.3.4).
func (s *response) update(h http.Header, sent, received time.Time) {
	s.header.Del("Age") // it was that of the other answer
	for name, values := range h {
		if name != "Content-Length" && name != "Content-Encoding" {
			s.header[name] = values
		}
	}
	s.freshUntil = received.Add(freshness(s.header, sent, received))
}

// makeConditional asks for the body only if it differs from the stored one.
func (s *response) makeConditional(h http.Header) {
	if tag := s.header.Get("ETag"); tag != "" {
		h.Set("If-None-Match", tag)
	}
	if at := s.header.Get("Last-Modified"); at != "" {
		h.Set("If-Modified-Since", at)
	}
}

// freshness is for how long a response received now may be used without asking (RFC 9111, 4.2). There is no guessing:
// without a lifetime it is stale at once.
func freshness(h http.Header, sent, received time.Time) time.Duration {
	c := parseControl(h)
	lifetime := c.maxAge
	switch {
	case c.noCache:
		return 0
	case !c.hasMaxAge:
		lifetime = untilExpiry(h, received)
	}
	return max(0, min(lifetime, MaxAge)-age(h, sent, received))
}

// untilExpiry is the lifetime by Expires; 0 if there is none or it cannot be read.
func untilExpiry(h http.Header, received time.Time) time.Duration {
	expires, err := http.ParseTime(h.Get("Expires"))
	if err != nil {
		return 0
	}
	return expires.Sub(dateOf(h, received))
}

func dateOf(h http.Header, received time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return received
}

// age is how old a response is when it arrives (RFC 9111, 4.2.3).
func age(h http.Header, sent, received time.Time) time.Duration {
	apparent := received.Sub(dateOf(h, received)).Truncate(time.Second)
	return max(0, apparent, seconds(h.Get("Age"))+received.Sub(sent))
}

// control is what Cache-Control says.
type control struct {
	noStore, noCache, hasMaxAge bool
	maxAge                      time.Duration
}

func parseControl(h http.Header) (c control) {
	values := h.Values("Cache-Control")
	if len(values) == 0 && strings.EqualFold(strings.TrimSpace(h.Get("Pragma")), "no-cache") {
		return control{noCache: true}
	}
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "no-store":
			c.noStore = true
		case "no-cache":
			c.noCache = true
		case "max-age":
			if !c.hasMaxAge { // of several the first counts (RFC 9111, 4.2.1)
				c.hasMaxAge, c.maxAge = true, seconds(strings.Trim(strings.TrimSpace(value), `"`))
			}
		}
	}
	return c
}

// seconds reads a number of seconds. One that cannot be read, or is negative, is none; one beyond a day is a day,
// which is more than any limit here.
func seconds(text string) time.Duration {
	const most = 24 * 60 * 60
	n := 0
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0
		}
		n = min(n*10+int(c-'0'), most)
	}
	return time.Duration(n) * time.Second
}

// retryAt is when to ask again after a refusal: now, unless the server asks for patience.
func retryAt(status int, h http.Header, now time.Time) time.Time {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" || status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return time.Time{}
	}
	wait := seconds(text)
	if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(dateOf(h, now))
	}
	return now.Add(max(0, min(wait, MaxPostpone)))
}
