package state_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
)

var (
	soon  = now.Add(time.Hour)
	later = now.AddDate(0, 1, 0)
	past  = now.Add(-time.Hour)
)

// jwt returns a JSON Web Token with these claims.
func jwt(claims string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"RS256","typ":"JWT"}`) + "." + part(claims) + ".c2lnbmF0dXJl"
}

func ends(at time.Time) string { return jwt(fmt.Sprintf(`{"sub":"ada","exp":%d}`, at.Unix())) }

func authCookie(name string, httpOnly bool, end *time.Time) state.Cookie {
	c := state.Cookie{Name: name, Value: "opaque-secret", Domain: ".www.a.example", Path: "/", HTTPOnly: httpOnly, Expires: -1, Session: true}
	if end != nil {
		c.Expires, c.Session = float64(end.Unix()), false
	}
	return c
}

func stored(key, value string) state.Document {
	return state.Document{Local: []state.Area{{StorageKey: "https://app.a.example/", Items: []state.Item{{Key: key, Value: value}}}}}
}

// Each case is a credential in the form that its library stores.
func TestLoginOfOneThing(t *testing.T) {
	jar := func(cookies ...state.Cookie) state.Document { return state.Document{Cookies: cookies} }
	withValue := func(c state.Cookie, value string) state.Cookie { c.Value = value; return c }
	for name, test := range map[string]struct {
		doc   state.Document
		basis state.LoginBasis // "" means no login
		end   *time.Time
	}{
		"session cookie":                  {jar(authCookie("connect.sid", true, nil)), state.BasisSessionCookie, nil},
		"PHP":                             {jar(authCookie("PHPSESSID", true, nil)), state.BasisSessionCookie, nil},
		"persistent cookie":               {jar(authCookie("user_session", true, &later)), state.BasisCookie, &later},
		"remember me":                     {jar(authCookie("remember_web_59ba36addc2b2f94", true, &later)), state.BasisCookie, &later},
		"a token that scripts read":       {jar(authCookie("auth_token", false, &soon)), state.BasisCookie, &soon},
		"DokuWiki":                        {jar(authCookie("DW68700bfd16c2027de7de74a5a8202a6f", true, &later)), state.BasisCookie, &later},
		"the hint of a name":              {jar(authCookie("login_hint", false, &soon), authCookie("last_login", true, &soon)), "", nil},
		"refresh token cookie":            {jar(authCookie("refresh_token", true, &later)), state.BasisRefreshToken, &later},
		"JWT in a cookie":                 {jar(withValue(authCookie("AUTH", true, &later), ends(soon))), state.BasisJWT, &soon},
		"JWT outliving its cookie":        {jar(withValue(authCookie("AUTH", true, &soon), ends(later))), state.BasisJWT, &soon},
		"a session that scripts read":     {jar(authCookie("my_session", false, &soon)), "", nil},
		"Hotjar":                          {jar(authCookie("_hjSession_123", true, &soon)), "", nil},
		"forgery protection":              {jar(authCookie("csrftoken", true, &later)), "", nil},
		"forgery protection as a JWT":     {jar(withValue(authCookie("XSRF-TOKEN", false, nil), ends(soon))), "", nil},
		"logged_in=no":                    {jar(withValue(authCookie("logged_in", true, &later), "no")), "", nil},
		"preferences":                     {jar(authCookie("theme", true, &later), authCookie("lesson", false, &later)), "", nil},
		"JWT":                             {stored("jwt", ends(soon)), state.BasisJWT, &soon},
		"JWT, over":                       {stored("jwt", ends(past)), state.BasisJWT, &past},
		"JWT as a JSON string":            {stored("t", `"`+ends(soon)+`"`), state.BasisJWT, &soon},
		"JWT with its scheme":             {stored("t", "Bearer "+ends(soon)), state.BasisJWT, &soon},
		"JWT without an end":              {stored("jwt", jwt(`{"sub":"ada"}`)), "", nil},
		"JWT that ends in 1970":           {stored("jwt", jwt(`{"exp":12}`)), "", nil},
		"a refresh token's JWT":           {stored("kc_refreshToken", ends(later)), state.BasisRefreshToken, &later},
		"three parts that are no JWT":     {stored("version", "eyes.wide.shut"), "", nil},
		"oidc-client-ts":                  {stored("oidc.user:https://id.example:spa", fmt.Sprintf(`{"id_token":"x","access_token":"y","token_type":"Bearer","profile":{"sub":"ada"},"expires_at":%d}`, soon.Unix())), state.BasisToken, &soon},
		"oidc-client-ts, renewing":        {stored("oidc.user:https://id.example:spa", fmt.Sprintf(`{"access_token":"y","refresh_token":"r","expires_at":%d}`, past.Unix())), state.BasisRefreshToken, nil},
		"MSAL access token":               {stored("uid.utid-login.windows.net-accesstoken-c-t-s", fmt.Sprintf(`{"credentialType":"AccessToken","secret":"y","expiresOn":"%d","cachedAt":"%d"}`, soon.Unix(), past.Unix())), state.BasisToken, &soon},
		"MSAL refresh token":              {stored("uid.utid-login.windows.net-refreshtoken-c--", `{"credentialType":"RefreshToken","secret":"y"}`), state.BasisRefreshToken, nil},
		"Auth0":                           {stored("@@auth0spajs@@::c::default::openid", fmt.Sprintf(`{"body":{"access_token":"y","expires_in":86400},"expiresAt":%d}`, soon.Unix())), state.BasisToken, &soon},
		"Firebase":                        {stored("firebase:authUser:key:[DEFAULT]", fmt.Sprintf(`{"uid":"u","stsTokenManager":{"refreshToken":"r","accessToken":%q,"expirationTime":%d}}`, ends(soon), soon.UnixMilli())), state.BasisRefreshToken, nil},
		"Supabase":                        {stored("sb-abc-auth-token", fmt.Sprintf(`{"access_token":"y","refresh_token":"r","expires_at":%d,"user":{"id":"u"}}`, soon.Unix())), state.BasisRefreshToken, nil},
		"Amplify access token":            {stored("CognitoIdentityServiceProvider.c.ada.accessToken", ends(soon)), state.BasisJWT, &soon},
		"Amplify refresh token":           {stored("CognitoIdentityServiceProvider.c.ada.refreshToken", "eyJjdHkiOiJKV1QifQ.a.b.c.d"), state.BasisRefreshToken, nil},
		"only how long it lasts":          {stored("auth-tokens", `{"access_token":"y","expires_in":604800,"token_type":"Bearer"}`), state.BasisToken, nil},
		"a token's own end where none is": {stored("session", fmt.Sprintf(`{"token":%q}`, ends(soon))), state.BasisJWT, &soon},
		"milliseconds":                    {stored("s", fmt.Sprintf(`{"token":"y","expiresAt":%d}`, soon.UnixMilli())), state.BasisToken, &soon},
		"RFC 3339":                        {stored("s", fmt.Sprintf(`{"token":"y","expires_at":%q}`, soon.Format(time.RFC3339))), state.BasisToken, &soon},
		"no token":                        {stored("cache", fmt.Sprintf(`{"data":"y","expiresAt":%d}`, soon.Unix())), "", nil},
		"no JSON":                         {stored("cache", `{"access_token":`), "", nil},
		"session storage": {state.Document{Tabs: []state.Tab{{Session: []state.Area{{StorageKey: "https://a.example/^0https://b.example",
			Items: []state.Item{{Key: "jwt", Value: ends(soon)}}}}}}}, state.BasisJWT, &soon},
	} {
		t.Run(name, func(t *testing.T) {
			got := state.Logins(test.doc, now)
			if test.basis == "" {
				if len(got) > 0 {
					t.Fatalf("got %+v, want none", got)
				}
				return
			}
			if len(got) != 1 {
				t.Fatalf("got %+v, want one login", got)
			}
			l := got[0]
			if len(l.Names) != 1 || l.Site != "a.example" {
				t.Errorf("site %q, names %q", l.Site, l.Names)
			}
			l.Names, l.Site = nil, ""
			want := state.Login{Basis: test.basis, ExpectedEnd: test.end, Expired: test.end != nil && test.end.Equal(past)}
			if diff := cmp.Diff(want, l); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Of several credentials at one site the latest known end counts.
func TestLoginOfSeveral(t *testing.T) {
	doc := stored("jwt", ends(soon))
	doc.Cookies = []state.Cookie{authCookie("sid", true, nil), authCookie("remember_me", true, &later),
		{Name: "sid", Value: "v", Domain: "127.0.0.1", HTTPOnly: true, Session: true, Expires: -1},
		{Name: "sid", Value: "v", Domain: ".shop.example.co.uk", HTTPOnly: true, Expires: float64(past.Unix())}}
	want := []state.Login{
		{Site: "127.0.0.1", Basis: state.BasisSessionCookie, Names: []string{"sid"}},
		{Site: "a.example", ExpectedEnd: &later, Basis: state.BasisCookie, Names: []string{"jwt", "remember_me", "sid"}},
		{Site: "example.co.uk", ExpectedEnd: &past, Basis: state.BasisCookie, Names: []string{"sid"}, Expired: true},
	}
	if diff := cmp.Diff(want, state.Logins(doc, now)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// A month later that login has expired too. A login without a known end never expires.
	for i, expired := range []bool{false, true, true} {
		if want[i].At(later).Expired != expired {
			t.Errorf("%s: expired should be %t", want[i].Site, expired)
		}
	}
	// A refresh token outlasts what it renews.
	doc.Local[0].Items = append(doc.Local[0].Items, state.Item{Key: "s", Value: `{"refresh_token":"r"}`})
	if got := state.Logins(doc, later)[1]; got.Basis != state.BasisRefreshToken || got.ExpectedEnd != nil || got.Expired {
		t.Errorf("with a refresh token: %+v", got)
	}
}

// The number and length of names are limited.
func TestLoginNamesAreBounded(t *testing.T) {
	doc := state.Document{}
	for i := range 100 {
		doc.Cookies = append(doc.Cookies, authCookie(fmt.Sprintf("sid%03d", i)+strings.Repeat("é", 300)+"session", true, nil))
	}
	got := state.Logins(doc, now)[0]
	if len(got.Names) != 16 || len(got.Names[0]) > 256 {
		t.Errorf("%d names, the first with %d bytes", len(got.Names), len(got.Names[0]))
	}
}

// No stored data causes a panic, and the result contains only names.
func FuzzLogins(f *testing.F) {
	for _, value := range []string{ends(soon), `"` + ends(soon) + `"`, `{"access_token":"y","expires_at":1}`, `{"credentialType":"RefreshToken","secret":"s"}`,
		`{"body":{"token":"t"},"expiresAt":1e300}`, `{"expires_at":"NaN","token":"t"}`, "ey..", "a.b.c", "{", ""} {
		f.Add("sid", value, "https://a.example/^0https://b.example", true, -1.0)
		f.Add("refreshToken", value, "http://[::1]:8080/", false, 1e18)
	}
	f.Fuzz(func(t *testing.T, name, value, key string, httpOnly bool, expires float64) {
		doc := stored(name, value)
		doc.Local[0].StorageKey = key
		doc.Tabs = []state.Tab{{Session: doc.Local}}
		doc.Cookies = []state.Cookie{{Name: name, Value: value, Domain: key, HTTPOnly: httpOnly, Expires: expires}}
		got := state.Logins(doc, now)
		for _, l := range got {
			for _, n := range l.Names {
				if !strings.HasPrefix(strings.ToValidUTF8(name, "\uFFFD"), n) {
					t.Errorf("%q is not a name", n)
				}
			}
		}
		out, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		// A value of this length must not appear anywhere unless a name contains it.
		if plain := strings.ToLower(value); len(value) > 24 && !strings.Contains(strings.ToLower(name+key), plain) && strings.Contains(strings.ToLower(string(out)), plain) {
			t.Errorf("the result contains the value: %s", out)
		}
		if again := state.Logins(doc, now); !slices.EqualFunc(got, again, func(a, b state.Login) bool { return cmp.Equal(a, b) }) {
			t.Errorf("two calls differ: %+v, %+v", got, again)
		}
	})
}
