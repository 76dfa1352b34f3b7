package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Keys is the store of the records of API keys. It implements [profiles.KeyStore].
type Keys struct{ db *handle }

var _ profiles.KeyStore = (*Keys)(nil)

const keyColumns = "key_id, name, user_id, all_users, rights, hash, created_at, expires_at, networks, used_at, former_hash, former_until, quotas"

func scanKey(r row) (profiles.Key, error) {
	var k profiles.Key
	var user, hash, rights, networks, former, quotas []byte
	err := r.Scan(&k.ID, &k.Name, &user, &k.AllUsers, &rights, &hash, moment{&k.CreatedAt},
		moment{&k.ExpiresAt}, &networks, moment{&k.UsedAt}, &former, moment{&k.FormerUntil}, &quotas)
	if err != nil {
		return k, err
	}
	k.UserID = string(user)
	copy(k.Hash[:], hash)
	copy(k.Former[:], former)
	if len(quotas) > 0 {
		k.Quotas = quotas
	}
	return k, errors.Join(json.Unmarshal(rights, &k.Rights), json.Unmarshal(networks, &k.Networks))
}

// formerHash returns a former hash as it is stored; none is NULL.
func formerHash(hash [32]byte) any {
	if hash == ([32]byte{}) {
		return nil
	}
	return hash[:]
}

// CreateKey implements [profiles.KeyStore].
func (st *Keys) CreateKey(ctx context.Context, k profiles.Key) error {
	const op = "profiles.create_key"
	rights, err := encode(k.Rights)
	if err != nil {
		return failure(op, err)
	}
	networks, err := encode(k.Networks)
	if err != nil {
		return failure(op, err)
	}
	return st.db.write(ctx, op, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO api_keys ("+keyColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			k.ID, k.Name, []byte(k.UserID), k.AllUsers, rights, k.Hash[:], stamp(k.CreatedAt),
			stamp(k.ExpiresAt), networks, stamp(k.UsedAt), formerHash(k.Former), stamp(k.FormerUntil), string(k.Quotas))
		return err
	})
}

// RotateKey implements [profiles.KeyStore].
func (st *Keys) RotateKey(ctx context.Context, id string, hash [32]byte, until time.Time) (k profiles.Key, err error) {
	const op = "profiles.rotate_key"
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "UPDATE api_keys SET former_hash = hash, former_until = ?, hash = ? WHERE key_id = ?", stamp(until), hash[:], id)
		if err := requireRow(r, err, fault.KeyNotFound, op); err != nil {
			return err
		}
		k, err = scanKey(tx.QueryRowContext(ctx, "SELECT "+keyColumns+" FROM api_keys WHERE key_id = ?", id))
		return err
	})
	return k, err
}

// SetKeyQuotas implements [profiles.KeyStore].
func (st *Keys) SetKeyQuotas(ctx context.Context, id string, change func(was json.RawMessage) (json.RawMessage, error)) (k profiles.Key, err error) {
	const op = "profiles.set_key_quotas"
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		k, err = scanKey(tx.QueryRowContext(ctx, "SELECT "+keyColumns+" FROM api_keys WHERE key_id = ?", id))
		if err != nil {
			return orMissing(err, fault.KeyNotFound, op)
		}
		if k.Quotas, err = change(k.Quotas); err != nil {
			return callerError{err}
		}
		_, err := tx.ExecContext(ctx, "UPDATE api_keys SET quotas = ? WHERE key_id = ?", string(k.Quotas), id)
		return err
	})
	return k, err
}

// UseKey implements [profiles.KeyStore].
func (st *Keys) UseKey(ctx context.Context, id string, at time.Time) error {
	return st.db.writeLocked(ctx, "profiles.use_key", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE api_keys SET used_at = ? WHERE key_id = ? AND used_at < ?", stamp(at), id, stamp(at))
		return err
	})
}

// Keys implements [profiles.KeyStore].
func (st *Keys) Keys(ctx context.Context) ([]profiles.Key, error) {
	all, err := collect(ctx, st.db.reader, scanKey, "SELECT "+keyColumns+" FROM api_keys ORDER BY created_at, key_id")
	return all, failure("profiles.keys", err)
}

// KeyByHash implements [profiles.KeyStore].
func (st *Keys) KeyByHash(ctx context.Context, hash [32]byte) (profiles.Key, error) {
	k, err := scanKey(st.db.reader.QueryRowContext(ctx, "SELECT "+keyColumns+" FROM api_keys WHERE hash = ? OR former_hash = ? ORDER BY hash = ? DESC", hash[:], hash[:], hash[:]))
	return k, orMissing(err, fault.KeyNotFound, "profiles.key")
}

// Key implements [profiles.KeyStore].
func (st *Keys) Key(ctx context.Context, id string) (profiles.Key, error) {
	k, err := scanKey(st.db.reader.QueryRowContext(ctx, "SELECT "+keyColumns+" FROM api_keys WHERE key_id = ?", id))
	return k, orMissing(err, fault.KeyNotFound, "profiles.key")
}

// DeleteKey implements [profiles.KeyStore].
func (st *Keys) DeleteKey(ctx context.Context, id string) error {
	const op = "profiles.delete_key"
	return st.db.write(ctx, op, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "DELETE FROM api_keys WHERE key_id = ?", id)
		return requireRow(r, err, fault.KeyNotFound, op)
	})
}
