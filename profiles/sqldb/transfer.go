package sqldb

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// tables are all tables, each after those that it refers to. A migration that adds one adds
// it here too.
var tables = []string{
	"users", "api_keys", "sessions", "commits", "snapshots", "defaults", "answers", "extensions", "snapshot_extensions",
	"runs", "events", "messages", "notes", "deliveries", "audit", "webhook_secrets", "nodes", "stored_by_user", "stored_parts", "left_sessions",
	"archive_uses", "snapshot_holds", "session_claims", "check_claims", "tickets", "extension_chunks", "waiting_creates",
}

// kept are the tables that triggers write. A transfer replaces what they have written in the target.
var kept = []string{"stored_by_user", "stored_parts"}

// numbered are the tables whose sequence PostgreSQL assigns.
var numbered = []string{"commits", "notes", "deliveries"}

// Transferred is what a transfer has copied of a table.
type Transferred struct {
	Table string
	Rows  int64
	Hash  string // of all rows, in hexadecimal; it does not depend on their order
}

// One statement writes at most batch rows, and no more after it has batchBytes. SQLite takes
// 32,766 parameters, and no table has a hundred columns.
const (
	batch      = 200
	batchBytes = 4 << 20
)

// Transfer copies every row of another catalogue into this one, which must be empty, in one
// transaction. from is read as it is at one moment. Then Transfer reads all rows of both
// again and compares them; a difference is store_failed, and nothing is written. A catalogue
// that is not empty is config.
func (db *DB) Transfer(ctx context.Context, from *DB) (done []Transferred, err error) {
	const op = "profiles.transfer"
	source, err := from.handle.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, failure(op, err)
	}
	defer func() { _ = source.Rollback() }() // it has written nothing
	err = db.handle.write(ctx, op, func(tx *sql.Tx) error {
		done = nil
		for _, table := range tables {
			var rows int64
			if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&rows); err != nil {
				return err
			}
			if rows > 0 {
				return fault.New(fault.Config, op, "the target is not empty: its table %s has %d rows; give an empty database", table, rows)
			}
		}
		for _, table := range tables {
			if slices.Contains(kept, table) {
				if _, err := tx.ExecContext(ctx, "DELETE FROM "+table); err != nil {
					return err
				}
			}
			is, err := copyTable(ctx, source, tx, table)
			if err != nil {
				return fmt.Errorf("table %s: %w", table, err)
			}
			written, err := hashTable(ctx, tx, table)
			if err != nil {
				return err
			}
			if is != written {
				return fault.New(fault.StoreFailed, op, "table %s: the rows in the target differ from those in the source; nothing was written", table)
			}
			done = append(done, is)
		}
		if !db.handle.remote {
			return nil
		}
		for _, table := range numbered {
			if _, err := tx.ExecContext(ctx, "SELECT setval(pg_get_serial_sequence('"+table+"', 'sequence'), (SELECT COALESCE(MAX(sequence), 0) + 1 FROM "+table+"), false)"); err != nil {
				return err
			}
		}
		return nil
	})
	return done, err
}

// copyTable copies the rows of a table, and returns their number and hash.
func copyTable(ctx context.Context, from querier, to *sql.Tx, table string) (Transferred, error) {
	columns, booleans, err := describe(ctx, to, table)
	if err != nil {
		return Transferred{}, err
	}
	sum := rowSum{table: table}
	var args []any
	size := 0 // of the values in args that are bytes
	write := func() error {
		n := len(args) / len(columns)
		if n == 0 {
			return nil
		}
		one := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
		_, err := to.ExecContext(ctx, "INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES "+one+strings.Repeat(", "+one, n-1), args...)
		args, size = args[:0], 0
		return err
	}
	err = eachRow(ctx, from, table, columns, func(row []any) error {
		sum.add(row)
		for i, v := range row {
			switch v := v.(type) {
			case int64:
				if booleans[i] {
					row[i] = v != 0
				}
			case []byte:
				size += len(v)
			}
		}
		args = append(args, row...)
		if len(args) >= batch*len(columns) || size >= batchBytes {
			return write()
		}
		return nil
	})
	if err == nil {
		err = write()
	}
	return sum.result(), err
}

// hashTable returns the number and the hash of the rows of a table.
func hashTable(ctx context.Context, q querier, table string) (Transferred, error) {
	columns, _, err := describe(ctx, q, table)
	if err != nil {
		return Transferred{}, err
	}
	sum := rowSum{table: table}
	err = eachRow(ctx, q, table, columns, func(row []any) error { sum.add(row); return nil })
	return sum.result(), err
}

// describe returns a table's columns, by name, and which of them PostgreSQL stores as
// booleans.
func describe(ctx context.Context, q querier, table string) (columns []string, booleans []bool, err error) {
	rows, err := q.QueryContext(ctx, "SELECT * FROM "+table+" WHERE 1 = 0")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	types, err := rows.ColumnTypes()
	// The databases may have the columns in another order.
	slices.SortFunc(types, func(a, b *sql.ColumnType) int { return strings.Compare(a.Name(), b.Name()) })
	for _, t := range types {
		columns, booleans = append(columns, t.Name()), append(booleans, t.DatabaseTypeName() == "BOOL")
	}
	return columns, booleans, err
}

// eachRow calls do with every row of a table. do may change the row.
func eachRow(ctx context.Context, q querier, table string, columns []string, do func(row []any) error) (err error) {
	rows, err := q.QueryContext(ctx, "SELECT "+strings.Join(columns, ", ")+" FROM "+table)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok && b == nil { // SQLite's driver has no bytes for an empty value, which is not NULL
				row[i] = []byte{}
			}
		}
		if err := do(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// rowSum sums the hashes of rows, so that the order of the rows does not matter.
type rowSum struct {
	table string
	rows  int64
	sum   [4]uint64
}

// add adds a row: each value with its type and its length, booleans as numbers.
func (s *rowSum) add(row []any) {
	h := sha256.New()
	for _, v := range row {
		var text []byte
		kind := byte('n')
		switch v := v.(type) {
		case nil:
		case bool:
			kind, text = 'i', []byte{'0'}
			if v {
				text[0] = '1'
			}
		case string:
			kind, text = 's', []byte(v)
		case []byte:
			kind, text = 'b', v
		default:
			kind, text = 'i', fmt.Append(nil, v)
		}
		h.Write(binary.BigEndian.AppendUint64([]byte{kind}, uint64(len(text))))
		h.Write(text)
	}
	digest := h.Sum(nil)
	for i := range s.sum {
		s.sum[i] += binary.BigEndian.Uint64(digest[8*i:])
	}
	s.rows++
}

func (s *rowSum) result() Transferred {
	var b []byte
	for _, n := range s.sum {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return Transferred{Table: s.table, Rows: s.rows, Hash: hex.EncodeToString(b)}
}
