package capture

import (
	"context"

	"github.com/stasisd/stasis/browser/hiddentab"
	"github.com/stasisd/stasis/state"
)

// countScript is a script that counts an origin's items in the stores that Chrome repairs
// or empties when it opens them. It uses the same web APIs as the site's own scripts.
// Each store is opened twice: Chrome fails the first opening of a damaged store, and the
// second one sees the repaired store. The result has no entry for a store that could not
// be counted.
const countScript = `(async () => {
  const twice = async (ask) => { try { return await ask(); } catch { return await ask(); } };
  const of = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = request.onblocked = () => reject(request.error);
  });
  const databases = async (from) => {
    let n = 0, records = 0;
    for (const {name} of await from.databases()) {
      const db = await of(from.open(name));
      for (const store of db.objectStoreNames) records += await of(db.transaction(store).objectStore(store).count());
      db.close();
      n++;
    }
    return [n, records];
  };
  const cached = async (from) => {
    let n = 0;
    for (const name of await from.keys()) n += (await (await from.open(name)).keys()).length;
    return n;
  };
  const files = async (folder) => {
    let n = 0;
    for await (const entry of folder.values()) n += entry.kind === "file" ? 1 : await files(entry);
    return n;
  };
  const n = {};
  const kind = async (name, ask) => { try { n[name] = await twice(ask); } catch {} };
  const buckets = [];
  try {
    for (const name of await navigator.storageBuckets.keys()) buckets.push(await navigator.storageBuckets.open(name));
  } catch {}
  try {
    let sum = [0, 0];
    for (const from of [{indexedDB}, ...buckets]) {
      const [dbs, records] = await twice(() => databases(from.indexedDB));
      sum = [sum[0] + dbs, sum[1] + records];
    }
    [n.indexed_db, n.indexed_db_records] = sum;
  } catch {}
  await kind("cache_storage", async () => {
    let sum = 0;
    for (const from of [{caches}, ...buckets]) sum += await cached(from.caches);
    return sum;
  });
  await kind("file_system", async () => {
    let sum = await files(await navigator.storage.getDirectory());
    for (const bucket of buckets) sum += await files(await bucket.getDirectory());
    return sum;
  });
  await kind("service_workers", async () => (await navigator.serviceWorker.getRegistrations()).length);
  return n;
})()`

// HiddenReader reads the stores of storage keys that no tab needs to have open. It uses a
// hidden tab and sends no request to the site. A storage key that the hidden tab cannot
// open by name is an error.
type HiddenReader struct{ tab *hiddentab.Tab }

// OpenHiddenReader opens the hidden tab. The caller must call Close.
func OpenHiddenReader(ctx context.Context, conn hiddentab.Conn) (*HiddenReader, error) {
	t, err := hiddentab.Open(ctx, conn)
	if err != nil {
		return nil, err
	}
	return &HiddenReader{t}, nil
}

// Close removes the hidden tab.
func (r *HiddenReader) Close(ctx context.Context) { r.tab.Close(ctx) }

// Count counts an origin's items by component. A component that could not be counted has
// no entry.
func (r *HiddenReader) Count(ctx context.Context, origin string) (map[string]int, error) {
	counts := map[string]int{}
	return counts, r.tab.RunAt(ctx, origin, countScript, &counts)
}

// Local reads an origin's localStorage.
func (r *HiddenReader) Local(ctx context.Context, origin string) (state.Area, error) {
	return r.tab.ReadLocal(ctx, origin)
}
