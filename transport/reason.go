package transport

import "unicode/utf8"

// TruncateReason cuts a close reason to at most n bytes without splitting a character.
func TruncateReason(reason string, n int) string {
	if len(reason) <= n {
		return reason
	}
	for n > 0 && !utf8.RuneStart(reason[n]) {
		n--
	}
	return reason[:n]
}
