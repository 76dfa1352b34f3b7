package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// reading is what a run reads of the server and of the machine, before and after a load.
type reading struct {
	at                  time.Time
	commits, rollbacks  int64 // of transactions
	wal                 int64 // bytes of the write-ahead log since it began
	size                int64 // bytes of the database on disk
	tables              map[string]table
	transactions        map[string]transaction
	connections         int
	serverCPU, nodesCPU time.Duration
	serverMemory        int64 // bytes that only the server's processes use, and its shared buffers once
}

// table is what the server says of a table.
type table struct{ rows, bytes int64 }

// observer reads the server through a separate connection.
type observer struct {
	conn       *pgx.Conn
	postmaster int
}

func observe(ctx context.Context, url string) (*observer, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	o := &observer{conn: conn}
	_, o.postmaster, err = process(int(conn.PgConn().PID()))
	return o, err
}

func (o *observer) close(ctx context.Context) error { return o.conn.Close(ctx) }

// read reads the server. Its statistics are up to a second old, so it waits until they are
// written.
func (o *observer) read(ctx context.Context) (reading, error) {
	r := reading{tables: map[string]table{}}
	if _, err := o.conn.Exec(ctx, "SELECT pg_stat_clear_snapshot()"); err != nil {
		return r, err
	}
	err := o.conn.QueryRow(ctx, "SELECT xact_commit, xact_rollback, (pg_current_wal_lsn() - '0/0')::bigint, pg_database_size(current_database()), "+
		"(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') FROM pg_stat_database WHERE datname = current_database()").
		Scan(&r.commits, &r.rollbacks, &r.wal, &r.size, &r.connections)
	if err != nil {
		return r, err
	}
	if err := o.count(ctx, r.tables); err != nil {
		return r, err
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return r, err
	}
	r.nodesCPU = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	r.serverCPU, r.serverMemory, err = o.server()
	r.at = time.Now()
	return r, err
}

// count counts the rows of each table. The server's statistics also count rows of
// transactions that were undone.
func (o *observer) count(ctx context.Context, into map[string]table) error {
	rows, err := o.conn.Query(ctx, "SELECT relname FROM pg_stat_user_tables")
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		var t table
		query := "SELECT (SELECT count(*) FROM " + pgx.Identifier{name}.Sanitize() + "), pg_total_relation_size($1::text::regclass)"
		if err := o.conn.QueryRow(ctx, query, name).Scan(&t.rows, &t.bytes); err != nil {
			return err
		}
		into[name] = t
	}
	return nil
}

// clockTick is the unit of times in /proc/PID/stat, see sysconf(_SC_CLK_TCK): 100 Hz on
// every Linux that Go supports.
const clockTick = 10 * time.Millisecond

// server returns the CPU time and the memory of the server's processes.
func (o *observer) server() (cpu time.Duration, memory int64, err error) {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, 0, err
	}
	for _, p := range all {
		var pid int
		if _, err := fmt.Sscan(filepath.Base(p), &pid); err != nil {
			continue
		}
		took, parent, err := process(pid)
		if err != nil || parent != o.postmaster && pid != o.postmaster {
			continue // it has ended, or is another program's
		}
		cpu += took
		var size, resident, common int64
		statm, _ := os.ReadFile(filepath.Join(p, "statm"))
		if _, err := fmt.Sscan(string(statm), &size, &resident, &common); err == nil {
			memory += (resident - common) * int64(os.Getpagesize())
		}
	}
	return cpu, memory, nil
}

// process returns the CPU time of a process with its children that have ended, and its
// parent.
func process(pid int) (cpu time.Duration, parent int, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 15 {
		return 0, 0, errors.New("/proc: a short line")
	}
	var ticks, n int64
	for _, field := range f[11:15] { // utime, stime, cutime, cstime
		if _, err := fmt.Sscan(string(field), &n); err != nil {
			return 0, 0, err
		}
		ticks += n
	}
	_, err = fmt.Sscan(string(f[1]), &parent)
	return time.Duration(ticks) * clockTick, parent, err
}
