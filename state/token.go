package state

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of the search for a token.
const (
	maxTokenValue = 256 << 10 // size of a value in bytes
	maxTokenDepth = 3         // levels of JSON: client libraries wrap the token once or twice
)

// inItem finds the tokens of a storage item: a bare JWT, or the JSON that OpenID Connect
// client libraries store.
func inItem(item Item) []credential {
	value := strings.TrimSpace(item.Value)
	if value == "" || len(value) > maxTokenValue {
		return nil
	}
	var text string
	if value[0] == '"' && json.Unmarshal([]byte(value), &text) == nil {
		value = text
	}
	value = strings.TrimPrefix(value, "Bearer ")
	if end, ok := jwtEnd(value); ok {
		if renews(item.Key) {
			return []credential{{item.Key, BasisRefreshToken, end}}
		}
		return []credential{{item.Key, BasisJWT, end}}
	}
	// AWS Amplify stores each token under its own key, and encrypts the refresh token:
	// CognitoIdentityServiceProvider.<client>.<user>.refreshToken.
	if lower := strings.ToLower(item.Key); value != "" && value[0] != '{' &&
		(strings.HasSuffix(lower, "refreshtoken") || strings.HasSuffix(lower, "refresh_token")) {
		return []credential{{item.Key, BasisRefreshToken, time.Time{}}}
	}
	var object map[string]any
	if value == "" || value[0] != '{' || json.Unmarshal([]byte(value), &object) != nil {
		return nil
	}
	return inObject(item.Key, object, time.Time{}, maxTokenDepth)
}

// Names of the fields, in lower case and without "_", of what client libraries
// store:
//
//	oidc-client-ts  access_token, refresh_token, id_token, expires_at (seconds)
//	Supabase        the same; older: {currentSession: {…}, expiresAt}
//	Auth0 SPA       {body: {access_token, refresh_token, …}, expiresAt (seconds)}
//	Firebase        {stsTokenManager: {accessToken, refreshToken, expirationTime (milliseconds)}}
//	MSAL            {credentialType: AccessToken | IdToken | RefreshToken, secret, expiresOn (seconds, a string)}
var (
	tokenFields   = []string{"accesstoken", "idtoken", "token", "authtoken", "jwt"}
	refreshFields = []string{"refreshtoken"}
	endFields     = []string{"expiresat", "expireson", "expirationtime", "expiresontimestamp"}
)

// inObject finds the tokens in a JSON object and its nested objects. An expiry in an
// object also applies to its nested objects.
func inObject(name string, object map[string]any, end time.Time, depth int) []credential {
	fields := map[string]any{}
	for _, field := range slices.Sorted(maps.Keys(object)) {
		fields[strings.ToLower(strings.ReplaceAll(field, "_", ""))] = object[field]
	}
	for _, f := range endFields {
		if at, ok := moment(fields[f]); ok {
			end = at
		}
	}
	var found []credential
	if kind, _ := fields["credentialtype"].(string); kind != "" && isText(fields["secret"]) {
		basis := BasisToken
		if strings.EqualFold(kind, "RefreshToken") {
			basis = BasisRefreshToken
		}
		return []credential{{name, basis, end}}
	}
	for _, f := range refreshFields {
		if isText(fields[f]) {
			// The expiry in the same object is the access token's.
			own, _ := jwtEnd(fields[f].(string))
			found = append(found, credential{name, BasisRefreshToken, own})
		}
	}
	for _, f := range tokenFields {
		if !isText(fields[f]) {
			continue
		}
		c := credential{name, BasisToken, end}
		if own, ok := jwtEnd(fields[f].(string)); ok && end.IsZero() {
			c = credential{name, BasisJWT, own}
		}
		found = append(found, c)
		break // the ID token ends with the access token
	}
	if depth > 1 {
		for _, v := range object {
			if inner, ok := v.(map[string]any); ok {
				found = append(found, inObject(name, inner, end, depth-1)...)
			}
		}
	}
	return found
}

func isText(v any) bool {
	s, ok := v.(string)
	return ok && s != ""
}

// renews reports whether a token with this name renews a login.
func renews(name string) bool { return strings.Contains(strings.ToLower(name), "refresh") }

// jwtEnd returns the exp claim of a JSON Web Token in compact form (RFC 7519, RFC 7515
// section 7.1): header, payload and signature in base64url. It does not check the
// signature. ok is false if the value is no JWT or has no exp.
func jwtEnd(value string) (time.Time, bool) {
	parts := strings.Split(value, ".")
	if len(value) > maxTokenValue || len(parts) != 3 || !strings.HasPrefix(value, "ey") {
		return time.Time{}, false
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	var claims struct {
		End any `json:"exp"`
	}
	if !decodePart(parts[0], &header) || header.Algorithm == "" || !decodePart(parts[1], &claims) {
		return time.Time{}, false
	}
	return moment(claims.End)
}

func decodePart(part string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(part, "="))
	return err == nil && json.Unmarshal(raw, into) == nil
}

// The range of plausible expiries: 2001 to 2286, in seconds.
const (
	earliestEnd = 1e9
	latestEnd   = 1e10
)

// moment parses a time as libraries store it: seconds or milliseconds since 1970, as a
// number or a string of digits, or RFC 3339.
func moment(v any) (time.Time, bool) {
	var n float64
	switch v := v.(type) {
	case float64:
		n = v
	case string:
		var err error
		if n, err = strconv.ParseFloat(v, 64); err != nil {
			at, err := time.Parse(time.RFC3339, v)
			return at.UTC(), err == nil && !at.IsZero()
		}
	}
	if n >= earliestEnd*1000 {
		n /= 1000
	}
	if math.IsNaN(n) || n < earliestEnd || n > latestEnd {
		return time.Time{}, false
	}
	return time.Unix(int64(n), 0).UTC(), true
}
