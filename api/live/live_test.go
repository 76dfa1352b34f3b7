package live

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The policy allows exactly the page's own script and style, and nothing from elsewhere.
func TestPolicyAllowsThePageAndNothingElse(t *testing.T) {
	w := httptest.NewRecorder()
	if err := New().Write(w); err != nil {
		t.Fatal(err)
	}
	body, policy := w.Body.String(), w.Header().Get("Content-Security-Policy")
	for directive, tag := range map[string]string{"script-src": "script", "style-src": "style"} {
		inline := regexp.MustCompile(`(?s)<` + tag + `>(.*)</` + tag + `>`).FindStringSubmatch(body)
		if inline == nil || len(inline[1]) < 100 {
			t.Fatalf("no inline %s", tag)
		}
		if want := directive + " " + hashOf(inline[1]) + ";"; !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %q", policy, want)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none';") || !strings.Contains(policy, "frame-ancestors 'none'") {
		t.Errorf("policy %q", policy)
	}
	for _, foreign := range []string{"src=", "href=", "url(", "@import", "import(", "innerHTML", "/*script*/", "/*style*/"} {
		if strings.Contains(body, foreign) {
			t.Errorf("the page holds %q", foreign)
		}
	}
}

// Every script is in the page, once.
func TestOrderHasEveryScript(t *testing.T) {
	files, err := scripts.ReadDir("script")
	if err != nil {
		t.Fatal(err)
	}
	listed := slices.Sorted(slices.Values(order()))
	for i, f := range files { // they are sorted
		if i >= len(listed) || listed[i]+".js" != f.Name() {
			t.Fatalf("order has %q, and the folder has %s", listed, f.Name())
		}
	}
	if len(listed) != len(files) {
		t.Errorf("order has %q", listed)
	}
}

// The page for an error says why, and has no script. The text cannot break out of it.
func TestErrorPage(t *testing.T) {
	w := httptest.NewRecorder()
	if err := WriteError(w, http.StatusUnauthorized, "ended <b>"); err != nil {
		t.Fatal(err)
	}
	body, header := w.Body.String(), w.Header()
	if w.Code != http.StatusUnauthorized || !strings.HasPrefix(header.Get("Content-Type"), "text/html") || !strings.HasPrefix(header.Get("Content-Security-Policy"), "default-src 'none';") {
		t.Errorf("%d %v", w.Code, header)
	}
	if !strings.Contains(body, ">ended &lt;b&gt;</p>") || strings.Contains(body, "script") || strings.Contains(body, "/*style*/") {
		t.Errorf("%s", body)
	}
}
