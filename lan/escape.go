package lan

import "strings"

// unescape turns TXT strings from the form in which package dns holds them (zone file text, with backslashes) into what
// stood in the packet.
func unescape(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = unescapeText(text)
	}
	return out
}

func unescapeText(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\' || i+1 == len(text):
			b.WriteByte(text[i])
		case i+3 < len(text) && isDigits(text[i+1:i+4]):
			b.WriteByte((text[i+1]-'0')*100 + (text[i+2]-'0')*10 + text[i+3] - '0')
			i += 3
		default:
			b.WriteByte(text[i+1])
			i++
		}
	}
	return b.String()
}

// escape is the way back.
func escape(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)
	}
	return out
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
