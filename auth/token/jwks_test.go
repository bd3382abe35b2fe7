package token_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moqmesh/moqmesh/auth/token"
	"github.com/moqmesh/moqmesh/paths"
)

// keyServer answers in the process, so that time can be virtual.
type keyServer struct {
	asked  atomic.Int64
	answer func(w http.ResponseWriter, r *http.Request)
}

func (s *keyServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.answer(w, r)
	}()
	select {
	case <-done:
		return w.Result(), nil
	case <-r.Context().Done():
		<-done
		return nil, r.Context().Err()
	}
}

func jwks(keys ...*token.Key) func(http.ResponseWriter, *http.Request) {
	texts := make([]string, len(keys))
	for i, k := range keys {
		raw, _ := base64.RawURLEncoding.DecodeString(k.Encode())
		texts[i] = string(raw)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = io.WriteString(w, `{"keys":[`+strings.Join(texts, ",")+`]}`)
	}
}

func generate(tb testing.TB, alg, id string) (*token.Key, string) {
	tb.Helper()
	k, err := token.Generate(alg, id)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := k.Sign(token.Claims{Publish: paths.All})
	if err != nil {
		tb.Fatal(err)
	}
	return k, text
}

func TestRemote(t *testing.T) {
	first, signedFirst := generate(t, "ES256", "first")
	second, signedSecond := generate(t, "EdDSA", "second")
	secret, signedSecret := generate(t, "HS256", "secret")
	synctest.Test(t, func(t *testing.T) {
		srv := &keyServer{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }}
		r, err := token.NewRemote("https://example.com/keys?secret=MARK", &http.Client{Transport: srv}, nil)
		if err != nil {
			t.Fatal(err)
		}
		verify := func(text string, want error, asked int64) {
			t.Helper()
			_, err := token.Verify(t.Context(), text, r, time.Now())
			if !errors.Is(err, want) || errors.Is(err, token.ErrToken) && errors.Is(err, token.ErrUnavailable) {
				t.Errorf("error %v, want %v", err, want)
			}
			if err != nil && strings.Contains(err.Error(), "MARK") {
				t.Error(err)
			}
			if n := srv.asked.Load(); n != asked {
				t.Errorf("asked %d times, want %d", n, asked)
			}
		}
		verify(signedFirst, token.ErrUnavailable, 1)
		srv.answer = jwks(first, secret)
		verify(signedFirst, token.ErrUnavailable, 1) // not asked again so soon
		time.Sleep(10 * time.Second)
		verify(signedFirst, nil, 2)
		verify(signedSecret, token.ErrNoKey, 2) // no secrets from there
		time.Sleep(299 * time.Second)
		verify(signedFirst, nil, 2) // fresh
		time.Sleep(11 * time.Second)
		verify(signedFirst, nil, 3)
		// A rotation is noticed at once, by the token of the new key.
		srv.answer = jwks(first, second)
		time.Sleep(10 * time.Second)
		verify(signedSecond, nil, 4)
		// During an outage the last good set counts, without a question for every token.
		for i, bad := range []func(http.ResponseWriter, *http.Request){
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"keys":[]}`) },
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `<html>`) },
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"keys":[{}]}`) },
			func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		} {
			srv.answer = bad
			time.Sleep(301 * time.Second)
			verify(signedFirst, nil, int64(5+i))
			verify(signedSecond, nil, int64(5+i))
		}
		srv.answer = jwks(second) // the first one is withdrawn
		time.Sleep(10 * time.Second)
		verify(signedSecond, nil, 10)
		verify(signedFirst, token.ErrNoKey, 10)
	})
}

// TestRemoteSingleFlight: many tokens at once make one question, also while it hangs; the last good keys do not wait.
func TestRemoteSingleFlight(t *testing.T) {
	k, signed := generate(t, "ES256", "a")
	other, signedOther := generate(t, "ES256", "b")
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		srv := &keyServer{answer: func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-gate:
			case <-r.Context().Done():
			}
			jwks(k)(w, r)
		}}
		r, err := token.NewRemote("https://example.com/", &http.Client{Transport: srv}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(n int, text string, check func(error)) *sync.WaitGroup {
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					_, err := token.Verify(t.Context(), text, r, time.Now())
					check(err)
				})
			}
			synctest.Wait()
			return &wg
		}
		good := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		wg := ask(100, signed, good)
		close(gate)
		wg.Wait()
		if n := srv.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		gate = make(chan struct{})
		time.Sleep(301 * time.Second)
		start := time.Now()
		stuck := ask(50, signedOther, func(err error) {
			if !errors.Is(err, token.ErrUnavailable) {
				t.Errorf("unknown key: %v", err)
			}
		})
		ask(50, signed, good).Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("known keys waited %v", took)
		}
		stuck.Wait()
		if n := srv.asked.Load(); n != 2 {
			t.Errorf("asked %d times", n)
		}
	})
	_ = other
}

func TestRemoteURLs(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://example.com/keys": true, "http://127.0.0.1:1/": true, "http://[::1]/": true, "http://localhost/": true,
		"http://example.com/": false, "ftp://example.com/": false, "": false, "https://": false, "keys.json": false, "http://127.0.0.1.example.com/": false,
	} {
		if err := token.CheckURL(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := token.NewRemote("http://MARK:MARK@example.com", nil, nil); err == nil || strings.Contains(fmt.Sprint(err), "MARK") {
		t.Error(err)
	}
}
