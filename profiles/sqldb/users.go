package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Users is the store of the records of users. It implements [profiles.UserStore].
type Users struct{ db *handle }

var _ profiles.UserStore = (*Users)(nil)

const userColumns = "user_id, created_at, settings, login_checked"

// userByID returns the user's record. A user without a record is returned with only the
// ID.
func userByID(ctx context.Context, q querier, id string) (profiles.User, error) {
	var user, settings, checked []byte
	u := profiles.User{ID: id}
	err := q.QueryRowContext(ctx, "SELECT "+userColumns+" FROM users WHERE user_id = ?", []byte(id)).Scan(
		&user, moment{&u.CreatedAt}, &settings, &checked)
	if errors.Is(err, sql.ErrNoRows) {
		return u, nil
	}
	u.Settings, u.LoginChecked = settings, checked
	return u, err
}

// User implements [profiles.UserStore].
func (st *Users) User(ctx context.Context, id string) (profiles.User, error) {
	u, err := userByID(ctx, st.db.reader, id)
	return u, failure("profiles.user", err)
}

// UsersWithSettings implements [profiles.UserStore].
func (st *Users) UsersWithSettings(ctx context.Context) ([]profiles.User, error) {
	all, err := collect(ctx, st.db.reader, func(r row) (u profiles.User, err error) {
		var id, settings, checked []byte
		err = r.Scan(&id, moment{&u.CreatedAt}, &settings, &checked)
		u.ID, u.Settings, u.LoginChecked = string(id), settings, checked
		return u, err
	}, "SELECT "+userColumns+" FROM users WHERE settings IS NOT NULL ORDER BY user_id")
	return all, failure("profiles.users", err)
}

// UpdateUser implements [profiles.UserStore].
func (st *Users) UpdateUser(ctx context.Context, id string, at time.Time, change func(*profiles.User) error) (profiles.User, error) {
	const op = "profiles.update_user"
	var u profiles.User
	err := st.db.write(ctx, op, func(tx *sql.Tx) error {
		was, err := userByID(ctx, tx, id)
		if err != nil {
			return err
		}
		if was.CreatedAt.IsZero() {
			was.CreatedAt = at.UTC()
		}
		u = was
		if err := change(&u); err != nil {
			return callerError{err}
		}
		if u.ID != was.ID || !u.CreatedAt.Equal(was.CreatedAt) {
			return fault.New(fault.Internal, op, "the ID and time of creation of a user cannot change")
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO users ("+userColumns+") VALUES (?, ?, ?, ?) ON CONFLICT (user_id) "+
			"DO UPDATE SET settings = excluded.settings, login_checked = excluded.login_checked",
			[]byte(u.ID), stamp(u.CreatedAt), blob(u.Settings), blob(u.LoginChecked))
		if err != nil {
			return err
		}
		err = addNotices(ctx, tx, profiles.Session{ID: u.NoticesOf, UserID: u.ID}, u.Notices)
		u.Notices, u.NoticesOf = nil, ""
		return err
	})
	if err != nil {
		return profiles.User{}, err
	}
	return u, nil
}
