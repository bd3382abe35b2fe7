package admin

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"reflect"
	"time"
)

//go:embed page/overview.html
var overviewText string

var overviewPage = template.Must(template.New("overview").Funcs(template.FuncMap{
	"age":     Age,
	"ageUnix": func(now time.Time, unix int64) string { return Age(now, time.Unix(unix, 0)) },
	"until":   func(now, then time.Time) string { return Age(then, now) },
	"bytes":   formatBytes,
	"percent": func(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) },
	"more":    func(all int, list any) int { return missing(all, reflect.ValueOf(list).Len()) },
}).Parse(overviewText))

// missing is how many a cut list leaves out. Totals count more than lists may show, so only a full list counts.
func missing(all, shown int) int {
	if shown < ListLimit {
		return 0
	}
	return max(0, all-shown)
}

// overview serves the page at /: no scripts, nothing from elsewhere, and what peers have sent escaped.
func (in *internal) overview(w http.ResponseWriter, _ *http.Request) {
	var page bytes.Buffer
	if err := overviewPage.Execute(&page, in.Overview()); err != nil {
		answer(w, http.StatusInternalServerError, textPlain, "internal error")
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	answer(w, http.StatusOK, textHTML, page.String())
}

// Age is the time from then to now, as short as people say it: the two largest units.
func Age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	s := int64(max(0, now.Sub(then)) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh %dm", s/3600, s/60%60)
	default:
		return fmt.Sprintf("%dd %dh", s/86400, s/3600%24)
	}
}

// Bytes is a number of bytes as people read it.
func Bytes(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, names := float64(n)/unit, "KMGTPE"
	for v >= unit && len(names) > 1 {
		v, names = v/unit, names[1:]
	}
	return fmt.Sprintf("%.1f %ciB", v, names[0])
}

// formatBytes is Bytes for what templates have.
func formatBytes(n any) string {
	switch n := n.(type) {
	case uint64:
		return Bytes(n)
	case int64:
		return Bytes(uint64(max(0, n)))
	default:
		return fmt.Sprint(n)
	}
}
