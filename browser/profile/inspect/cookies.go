package inspect

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/state"
)

// jarColumns reads the columns of the cookie database of Chromium 156
// (net/extras/sqlite/sqlite_persistent_cookie_store.cc, version 24).
const jarColumns = `SELECT host_key, top_frame_site_key, has_cross_site_ancestor, name, value, encrypted_value, path,
	expires_utc, is_persistent, is_secure, is_httponly, priority, samesite, source_scheme, source_port FROM cookies`

// epoch is 1970 in Chrome's time, in seconds since 1601.
const epoch = 11644473600

// cookies reads the cookie jar. Its values are obfuscated with a key that
// --password-store=basic fixes (components/os_crypt/sync/os_crypt_linux.cc). A cookie
// whose value has another key is listed in unreadable.
func (s *survey) cookies() {
	if !s.exists("Cookies") {
		return
	}
	byDomain := map[string]int{}
	jar := []state.Cookie{}
	s.unreadable = map[string]string{}
	damage, uncounted := s.sqlite("Cookies", "cookies", func(ctx context.Context, db *sql.DB) error {
		key, err := pbkdf2.Key(sha1.New, "peanuts", []byte("saltysalt"), 1, 16)
		if err != nil {
			return err
		}
		rows, err := db.QueryContext(ctx, jarColumns)
		if err != nil {
			return err
		}
		defer rows.Close()
		var kept budget
		for rows.Next() {
			c, sealed, err := scanCookie(rows)
			if err != nil {
				return err
			}
			if err := kept.take(len(c.Name) + len(c.Value) + len(sealed) + len(c.Domain) + len(c.Path)); err != nil {
				return err
			}
			byDomain[c.Origin()]++
			if len(sealed) > 0 {
				if c.Value, err = unseal(key, sealed, c.Domain); err != nil {
					s.unreadable[c.Identity()] = underAnotherKey
				}
			}
			jar = append(jar, c)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
		s.jarAt = newestCookie(ctx, db)
		return nil
	})
	s.counts(state.ComponentCookies, byDomain, damage, uncounted)
	if damage+uncounted == "" {
		slices.SortFunc(jar, func(a, b state.Cookie) int { return strings.Compare(a.Identity(), b.Identity()) })
		s.jar = jar
	}
}

// newestCookie returns when the newest cookie was created or changed; the zero time if the
// database does not say.
func newestCookie(ctx context.Context, db *sql.DB) time.Time {
	var newest sql.NullInt64 // microseconds since 1601
	err := db.QueryRowContext(ctx, `SELECT max(max(creation_utc, last_update_utc)) FROM cookies`).Scan(&newest)
	if err != nil || newest.Int64 <= epoch*1e6 {
		return time.Time{}
	}
	return time.UnixMicro(newest.Int64 - epoch*1e6)
}

func scanCookie(rows *sql.Rows) (c state.Cookie, sealed []byte, err error) {
	var (
		site                                      string
		ancestor, persistent                      bool
		expires, priority, sameSite, sourceScheme int64
	)
	err = rows.Scan(&c.Domain, &site, &ancestor, &c.Name, &c.Value, &sealed, &c.Path, &expires, &persistent,
		&c.Secure, &c.HTTPOnly, &priority, &sameSite, &sourceScheme, &c.SourcePort)
	c.Session, c.Expires = !persistent, -1
	if persistent {
		c.Expires = float64(expires)/1e6 - epoch
	}
	c.SameSite = enumName(sameSite, "None", "Lax", "Strict")
	c.Priority = enumName(priority, "Low", "Medium", "High")
	c.SourceScheme = enumName(sourceScheme, "Unset", "NonSecure", "Secure")
	if site != "" {
		c.Partition = &state.PartitionKey{TopLevelSite: site, HasCrossSiteAncestor: ancestor}
	}
	return c, sealed, err
}

// enumName returns the word for a number, "" if there is none.
func enumName(n int64, words ...string) string {
	if n < 0 || n >= int64(len(words)) {
		return ""
	}
	return words[n]
}

// underAnotherKey is the reason for cookies whose values are encrypted with another key.
const underAnotherKey = "encrypted with another key, such as that of a system keyring (v11): it cannot be read here"

var errForeign = errors.New("the value is encrypted with another key")

// unseal decodes an obfuscated value: AES-CBC with a fixed key and vector. The plain text
// is the hash of the cookie's host, followed by the value.
func unseal(key, sealed []byte, host string) (string, error) {
	body, ok := bytes.CutPrefix(sealed, []byte("v10"))
	if !ok || len(body) == 0 || len(body)%aes.BlockSize != 0 {
		return "", errForeign
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	plain := make([]byte, len(body))
	cipher.NewCBCDecrypter(block, bytes.Repeat([]byte(" "), aes.BlockSize)).CryptBlocks(plain, body)
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > aes.BlockSize {
		return "", errForeign
	}
	hash := sha256.Sum256([]byte(host))
	value, ok := bytes.CutPrefix(plain[:len(plain)-pad], hash[:])
	if !ok {
		return "", errForeign
	}
	return string(value), nil
}
