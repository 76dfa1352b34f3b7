// Reads one snapshot of a store by docs/format.md alone: with Node's standard
// library and the commands age and zstd. It shares no code with Stasis.
//
//   node reader.mjs DIR OWNER SESSION SCOPE SCOPE_ID SNAPSHOT_ID|latest
//
// DIR has identity, archive-key and snapshots/. It prints the snapshot as
// JSON. It fails with a message if something is wrong.

import { execFileSync } from "node:child_process";
import { createHash, createHmac } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";

const sha256 = (bytes) => createHash("sha256").update(bytes).digest();
const hmac = (key, ...parts) => parts.reduce((mac, part) => mac.update(part), createHmac("sha256", key)).digest();

function must(holds, sentence) {
  if (!holds) throw new Error(sentence);
}

const forms = {
  owner: /^[0-9a-f]{32}$/,
  element: /^[a-z0-9_-]{1,128}$/,
  scope: /^(agent|multiAgent)$/,
  snapshot: /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  digest: /^[0-9a-f]{64}$/,
};

const [dir, owner, session, scope, scopeID, wanted] = process.argv.slice(2);
const identity = join(dir, "identity");
const ownerKey = hmac(Buffer.from(readFileSync(join(dir, "archive-key"), "utf8").trim(), "hex"), "owner " + owner);

// 1. The key.
must(forms.owner.test(owner) && forms.element.test(session) && forms.scope.test(scope) && forms.element.test(scopeID), "the location has not its form");
must(wanted === "latest" || forms.snapshot.test(wanted), "the snapshot ID has not its form");
const place = join(dir, "snapshots/users", owner, "sessions", session, "scopes", scope, scopeID, "snapshots");
const file = wanted === "latest" ? "snapshot_latest.json" : `immutable_history/snapshot_${wanted}.json`;

// 2, 3 and 4. The document. JSON.parse accepts duplicate names. A reader for which that
// matters needs a stricter parser.
must(statSync(join(place, file)).size <= 8 << 20, "the document is too large");
const bytes = readFileSync(join(place, file));
const document = JSON.parse(bytes.toString("utf8"));
must(["1.0", "1.1"].includes(document.schemaVersion), `schemaVersion ${document.schemaVersion} is not known here`);
const only = (object, names) => must(Object.keys(object).every((name) => names.includes(name)), "a name is unknown");
only(document, ["scope", "schemaVersion", "createdAt", "data", "appData"]);
const { data, appData } = document;
only(appData, ["sealed"]);
only(data, ["snapshot_id", "owner", "session_id", "scope_id", "mode", "archive", "recipients", "mac", "facts", "sealed"]);
const { archive } = data;
only(archive, ["id", "payload_sha256", "payload_size", "stored_size", "tar_sha256", "tar_size", "entries", "head"]);
const { head } = archive;
must((document.schemaVersion === "1.1") === (head !== undefined), "only a document of version 1.1 has a head");
if (head !== undefined) {
  only(head, ["tar_sha256", "tar_size", "entries"]);
  must(forms.digest.test(head.tar_sha256) && head.tar_size > 0 && head.tar_size < archive.tar_size && head.entries > 0 && head.entries < archive.entries, "the head is out of range");
  must(data.mac !== undefined, "a document with a head has a MAC");
}
must(data.mode === "filesystem" || data.mode === "memory", "unknown mode");
must([archive.id, archive.payload_sha256, archive.tar_sha256].every((hash) => forms.digest.test(hash)), "a hash has not its form");
must(archive.payload_size > 0 && archive.stored_size >= archive.payload_size && archive.tar_size > 0 && archive.entries >= 0, "a size is out of range");
must(!Number.isNaN(Date.parse(document.createdAt)), "createdAt is no time");
must(data.owner === owner && data.session_id === session && document.scope === scope && data.scope_id === scopeID, "the document belongs elsewhere");
must(wanted === "latest" ? forms.snapshot.test(data.snapshot_id) : data.snapshot_id === wanted, "the document is another snapshot's");

// 5. The archive's name, and the MAC.
must(hmac(ownerKey, Buffer.from(archive.tar_sha256, "hex")).toString("hex") === archive.id, "the archive's name does not follow from its contents");
if (data.mac !== undefined) {
  const at = bytes.indexOf(`"mac":"${data.mac}"`) + `"mac":"`.length;
  const zeroed = Buffer.from(bytes).fill("0", at, at + 64);
  must(hmac(ownerKey, "document ", zeroed).toString("hex") === data.mac, "the document's MAC is wrong");
}

// 6. The sealed parts.
const run = (command, args, input) => execFileSync(command, args, { input, maxBuffer: 1 << 30 });
const open = (part) => {
  const sealed = JSON.parse(run("age", ["--decrypt", "-i", identity], Buffer.from(part, "base64")));
  must(sealed.snapshot_id === data.snapshot_id, "a sealed part is another snapshot's");
  return sealed;
};
const sealed = data.sealed === undefined ? null : open(data.sealed);
const noted = appData.sealed === undefined ? null : open(appData.sealed);

// 7. The archive's payload.
const stored = readFileSync(join(dir, "snapshots/archives", archive.id));
const mac = stored.indexOf("\n--- ") + 1;
const payload = stored.subarray(stored.indexOf("\n", mac) + 1);
must(payload.length === archive.payload_size && sha256(payload).toString("hex") === archive.payload_sha256, "the payload is not the one that was saved");

// 8. The tar.
const tar = run("zstd", ["-d", "-c", "-M8MiB"], run("age", ["--decrypt", "-i", identity], stored));
must(tar.length === archive.tar_size && sha256(tar).toString("hex") === archive.tar_sha256, "the tar is not the one that was saved");
const entries = [...untar(tar)];
must(entries.length === archive.entries, "the tar has another number of entries");
if (head !== undefined) {
  must(sha256(tar.subarray(0, head.tar_size)).toString("hex") === head.tar_sha256, "the head is not the one that was saved");
  must(entries[head.entries].begins === head.tar_size, "the head has another number of entries");
}
const state = JSON.parse(entries.find((entry) => entry.name === "state.json").body);
must(state.schema_version === "1", `the state document's version ${state.schema_version} is not known here`);

function* untar(tar) {
  let pax = {};
  let last = Buffer.alloc(0);
  let at = 0;
  let count = 0;
  for (; tar[at] !== 0; ) {
    const header = tar.subarray(at, at + 512);
    const text = (from, to) => header.toString("utf8", from, to).replace(/\0.*$/s, "");
    const number = (from, to) => parseInt(text(from, to).trim(), 8);
    const sum = header.reduce((sum, byte, i) => sum + (i >= 148 && i < 156 ? 32 : byte), 0);
    must(sum === number(148, 156), "a tar header is damaged");
    must(text(257, 263) === "ustar", "it is no ustar header");
    const size = number(124, 136);
    const begins = at + 512;
    const body = tar.subarray(begins, begins + size);
    at += 512 + 512 * Math.ceil(size / 512);
    const type = text(156, 157);
    if (type === "x") {
      pax = records(body);
      continue;
    }
    must(type === "0" || type === "5", "neither a file nor a folder");
    const prefix = text(345, 500);
    const folder = type === "5";
    let name = pax.path ?? (prefix ? prefix + "/" : "") + text(0, 100);
    must(folder === name.endsWith("/"), "a folder's name ends with a slash, and only a folder's");
    if (folder) name = name.slice(0, -1);
    pax = {};
    const asBytes = Buffer.from(name);
    must(name.split("/").every((part) => part !== "" && part !== "." && part !== ".." && Buffer.byteLength(part) <= 255), "a name is not clean");
    must(asBytes.length <= 4096 && !/[\x00-\x1f\x7f]/.test(name), "a name is not clean");
    if (count++ === head?.entries) last = Buffer.alloc(0);
    must(Buffer.compare(last, asBytes) < 0, "the names are not in their order");
    last = asBytes;
    const mode = number(100, 108);
    must(mode === 0o700 || (mode === 0o600 && !folder), "a mode is another");
    must(number(108, 116) === 0 && number(116, 124) === 0 && text(265, 297) === "" && text(297, 329) === "", "an entry has an owner");
    yield { name, folder, mode, time: number(136, 148), body, begins };
  }
  must(tar.length === at + 1024 && tar.subarray(at).every((byte) => byte === 0), "the tar does not end as it must");
}

function records(body) {
  const found = {};
  for (let at = 0; at < body.length; ) {
    const length = parseInt(body.toString("utf8", at, body.indexOf(" ", at)), 10);
    const [, name, value] = /^\d+ ([^=]+)=(.*)\n$/s.exec(body.toString("utf8", at, at + length));
    must(name === "path", "an unknown pax record");
    found[name] = value;
    at += length;
  }
  return found;
}

console.log(JSON.stringify({
  owner, session, scope, scope_id: scopeID, id: data.snapshot_id, mode: data.mode, created_at: document.createdAt,
  recipients: data.recipients, archive: archive.id, facts: data.facts, private: sealed?.private ?? null, ...(noted && { app_data: noted.app_data }),
  entries: entries.map(({ name, folder, mode, time, body }) => ({
    name, mode: folder ? "folder" : mode.toString(8).padStart(4, "0"), time, size: body.length,
    ...(folder ? {} : { sha256: sha256(body).toString("hex") }),
  })),
}));
