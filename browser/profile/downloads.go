package profile

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/browser/profile/internal/sqlite"
	"github.com/stasisd/stasis/fault"
)

// history is the database of visits and downloads.
const history = "History"

// historyDeadline bounds the cleaning of a history.
const historyDeadline = 30 * time.Second

var errUnknownHistory = errors.New("the history has a trigger, or a downloads table that Chrome did not create")

// dropDownloads removes from a profile's downloads the paths of their files and makes
// unfinished ones cancelled. Address and file name stay. An extension may resume a
// download or remove its file, and a crafted profile can name any file: Chrome resumes by
// moving that file to the downloads folder. dropDownloads deletes a history that is
// damaged or cannot be cleaned; the restore report then lists the missing visits. If the
// disk or the deadline is the cause, it fails instead.
func dropDownloads(ctx context.Context, root *os.Root, userDataDir, folder string) error {
	const op = "profile.downloads"
	file := path.Join(folder, history)
	info, err := root.Lstat(folder)
	if err == nil && !info.IsDir() {
		return fault.New(fault.StoreFailed, op, "the profile is not a folder")
	}
	if info, err = root.Lstat(file); errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, historyDeadline)
	defer cancel()
	switch err := removePaths(ctx, filepath.Join(userDataDir, folder, history)); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fault.Wrap(ctx.Err(), fault.Timeout, op, "the paths in the profile's downloads could not be removed in time")
	case !errors.Is(err, errUnknownHistory) && !errors.Is(err, sqlite.ErrNoFile) && !sqlite.Damaged(err):
		return fault.Wrap(err, fault.StoreFailed, op, "the paths in the profile's downloads could not be removed")
	}
	for _, beside := range []string{"", "-journal", "-wal", "-shm"} {
		if err := root.RemoveAll(file + beside); err != nil {
			return fault.Wrap(err, fault.StoreFailed, op, "a damaged history could not be removed")
		}
	}
	return nil
}

func removePaths(ctx context.Context, file string) (err error) {
	db, err := sqlite.OpenWritable(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var tables, unexpected int
	if err := db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE lower(name) = 'downloads' AND type = 'table' AND sql LIKE 'CREATE TABLE%'),
		count(*) FILTER (WHERE type = 'trigger' OR lower(name) = 'downloads' AND (type <> 'table' OR sql NOT LIKE 'CREATE TABLE%'))
		FROM sqlite_master`).Scan(&tables, &unexpected); err != nil {
		return err
	}
	if unexpected > 0 {
		return errUnknownHistory
	}
	if tables == 0 {
		return nil
	}
	var some bool
	if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM downloads)").Scan(&some); err != nil || !some {
		return err
	}
	return updateDownloads(ctx, db)
}

// updateDownloads replaces the paths of the files by their names in a folder that does
// not exist. In Chromium's download_constants.h, state 1 is complete and 2 is cancelled,
// which Chrome does not resume.
func updateDownloads(ctx context.Context, db *sql.DB) error {
	const name = `'/nonexistent/' || replace(target_path, rtrim(target_path, replace(target_path, '/', '')), '')`
	// An index that disagrees with its table would keep the old values. OR ABORT
	// overrides a conflict clause of the table that would skip rows.
	if _, err := db.ExecContext(ctx, "REINDEX downloads"); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, "UPDATE OR ABORT downloads SET current_path = "+name+", target_path = "+name+
		", state = CASE state WHEN 1 THEN 1 ELSE 2 END")
	return err
}
