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

// The bounds of what is looked into for a token.
const (
	maxTokenValue = 256 << 10 // bytes of a value
	maxTokenDepth = 3         // levels of JSON: client libraries wrap the token once or twice
)

// inItem finds the tokens of a storage item: a JWT by itself, or what OpenID
// Connect client libraries store as JSON.
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
	// AWS Amplify keeps each token under a key of its own, the refresh token
	// encrypted: CognitoIdentityServiceProvider.<client>.<user>.refreshToken.
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

// inObject finds the tokens of a JSON object and of those in it. An expiry
// noted beside an object counts for what is in it.
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
			// The expiry beside it is the access token's.
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

// renews reports whether a name is that of a token that renews a login.
func renews(name string) bool { return strings.Contains(strings.ToLower(name), "refresh") }

// jwtEnd is the exp claim of a JSON Web Token in its compact form (RFC 7519,
// RFC 7515 section 7.1): header, payload and signature in base64url. The
// signature is not looked at. False: it is none, or has no end.
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

// The times that an expiry is believed: 2001 to 2286, in seconds.
const (
	earliestEnd = 1e9
	latestEnd   = 1e10
)

// moment reads a time as libraries note it: seconds or milliseconds since
// 1970, as a number or a string of digits, or RFC 3339.
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
