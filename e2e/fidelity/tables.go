package main

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1" // Chrome derives its key with it
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver of Chrome's databases
)

// open opens a database of a closed Chrome.
func open(dir, name string) (*sql.DB, error) {
	return sql.Open("sqlite", filepath.Join(dir, "Default", name))
}

// execute runs a statement in a database of a closed Chrome.
func execute(ctx context.Context, dir, name, statement string, args ...any) error {
	db, err := open(dir, name)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement, args...)
	return errors.Join(err, db.Close())
}

// addLogin saves a password as Chrome does with --password-store=basic.
func addLogin(ctx context.Context, dir, site string, now int64) error {
	secret, err := encrypted("a password")
	if err != nil {
		return err
	}
	return execute(ctx, dir, "Login Data", `INSERT INTO logins (origin_url, action_url, username_element, username_value,
		password_element, password_value, submit_element, signon_realm, date_created, blacklisted_by_user, scheme, times_used)
		VALUES (?, ?, 'user', 'ada', 'password', ?, '', ?, ?, 0, 0, 1)`, site, site, secret, site, now)
}

// row is a step that returns the result of a query on a database of the closed profile,
// with rows and columns joined. shown converts the last column to text; nil leaves it
// unchanged.
func row(file, query string, shown func([]byte) (string, error)) step {
	return func(ctx context.Context, at *visit) (_ string, err error) {
		db, err := open(at.dir, file)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		rows, err := db.QueryContext(ctx, query)
		if err != nil && strings.Contains(err.Error(), "no such table") {
			return "", nil // opening made a new file
		}
		if err != nil {
			return "", err
		}
		defer rows.Close()
		columns, err := rows.Columns()
		if err != nil {
			return "", err
		}
		var found []string
		for rows.Next() {
			values := make([]sql.RawBytes, len(columns))
			into := make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				return "", err
			}
			for i, v := range values {
				text := string(v)
				if shown != nil && i == len(values)-1 {
					if text, err = shown(v); err != nil {
						return "", err
					}
				}
				found = append(found, text)
			}
		}
		return strings.Join(found, ", "), rows.Err()
	}
}

// basicKey returns the key that Chrome uses without a keyring (os_crypt's v10).
func basicKey() (cipher.Block, error) {
	key, err := pbkdf2.Key(sha1.New, "peanuts", []byte("saltysalt"), 1, aes.BlockSize)
	if err != nil {
		return nil, err
	}
	return aes.NewCipher(key)
}

const basicVersion = "v10"

// basicIV is the initialisation vector of os_crypt.
var basicIV = []byte(strings.Repeat(" ", aes.BlockSize))

func encrypted(plain string) ([]byte, error) {
	block, err := basicKey()
	if err != nil {
		return nil, err
	}
	pad := aes.BlockSize - len(plain)%aes.BlockSize
	out := []byte(plain + strings.Repeat(string(rune(pad)), pad))
	cipher.NewCBCEncrypter(block, basicIV).CryptBlocks(out, out)
	return append([]byte(basicVersion), out...), nil
}

func decrypted(secret []byte) (string, error) {
	block, err := basicKey()
	if err != nil {
		return "", err
	}
	out := []byte(strings.TrimPrefix(string(secret), basicVersion))
	if len(out) == len(secret) || len(out) == 0 || len(out)%aes.BlockSize != 0 {
		return "", fmt.Errorf("not a %s value: %d bytes", basicVersion, len(secret))
	}
	cipher.NewCBCDecrypter(block, basicIV).CryptBlocks(out, out)
	pad := int(out[len(out)-1])
	if pad == 0 || pad > aes.BlockSize {
		return "", errors.New("the value does not decrypt: wrong padding")
	}
	return string(out[:len(out)-pad]), nil
}
