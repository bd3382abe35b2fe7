package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// maxToken bounds the size of a token file, in bytes.
const maxToken = 64 << 10

// TokenFile is the shared credential for configured peers (C8). It is read anew for every dial, so that a changed file
// counts from the next one on; while the file cannot be used the last value stays.
type TokenFile struct {
	path string

	mu   sync.Mutex
	last string
	err  error
}

// OpenTokenFile reads the file for the first time. It fails if there is no usable token in it.
func OpenTokenFile(path string) (*TokenFile, error) {
	token, err := readToken(path)
	if err != nil {
		return nil, err
	}
	return &TokenFile{path: path, last: token}, nil
}

// Token returns the current credential. changed is true where the state of the file differs from that at the last
// call, so that the caller may log it once; err then tells why the last value is kept, nil that the file is good.
func (f *TokenFile) Token() (token string, changed bool, err error) {
	token, err = readToken(f.path)
	f.mu.Lock()
	defer f.mu.Unlock()
	changed = (err == nil) != (f.err == nil) || err == nil && token != f.last
	f.err = err
	if err == nil {
		f.last = token
	}
	return f.last, changed, err
}

func readToken(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	switch {
	case len(data) > maxToken:
		return "", fmt.Errorf("%s: larger than %d bytes", path, maxToken)
	case token == "":
		return "", fmt.Errorf("%s: %w", path, errEmptyToken)
	case !validToken(token):
		return "", fmt.Errorf("%s: %w", path, ErrToken)
	}
	return token, nil
}

var errEmptyToken = errors.New("the file is empty")
