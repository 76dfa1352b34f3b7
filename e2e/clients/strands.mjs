// Runs an agent of the Strands SDK, whose model only counts the messages of the user.
//
// Input, as JSON on stdin: {adapter, url, key, files, session, steps}
//   adapter     the compiled docs/strands.ts, which stores the session at url
//   files       instead of adapter: the folder of the SDK's FileStorage
//   local       instead of adapter: {root, namespace?} of the SDK's LocalFileStorage
//   session     the session's ID
//   steps       of one agent, each [name, argument?]
// Output, as JSON on stdout: {results}, one for each step; {error} for a step that threw
import { Agent, FileStorage, Model, SessionManager } from '@strands-agents/sdk';
import { LocalFileStorage } from '@strands-agents/sdk/storage';
import { text } from 'node:stream/consumers';

const { adapter, url, key, files, local, session, steps } = JSON.parse(await text(process.stdin));

class Counting extends Model {
  updateConfig() {}
  getConfig() {
    return { modelId: 'counting' };
  }
  async *stream(messages) {
    const received = messages.filter((message) => message.role === 'user').length;
    yield { type: 'modelMessageStartEvent', role: 'assistant' };
    yield { type: 'modelContentBlockStartEvent' };
    yield { type: 'modelContentBlockDeltaEvent', delta: { type: 'textDelta', text: `received ${received}` } };
    yield { type: 'modelContentBlockStopEvent' };
    yield { type: 'modelMessageStopEvent', stopReason: 'endTurn' };
  }
}

let storage, snapshot;
if (local) {
  storage = new LocalFileStorage(local.root);
  if (local.namespace) storage = storage.namespace(local.namespace);
} else {
  snapshot = files ? new FileStorage(files) : new (await import(adapter)).StasisStorage({ url, apiKey: key });
  storage = { snapshot };
}
// Every invocation saves an immutable snapshot besides the latest one.
const manager = new SessionManager({ sessionId: session, storage, snapshotTrigger: () => true });
const agent = new Agent({ model: new Counting(), sessionManager: manager, printer: false });
await agent.initialize(); // restores the session

const location = { sessionId: session, scope: 'agent', scopeId: agent.id };
const browser = { ...location, scopeId: 'browser' };
const operations = {
  invoke: async (words) => `${await agent.invoke(words)}`,
  said: async () => agent.messages.flatMap((message) => message.content.map((block) => block.text)),
  list: (page) => manager.listSnapshotIds({ target: agent, ...page }),
  restore: (snapshotId) => manager.restoreSnapshot({ target: agent, snapshotId }),
  save: (snapshotId) =>
    snapshot.saveSnapshot({ location, snapshotId, isLatest: false, snapshot: agent.takeSnapshot({ preset: 'session' }) }),
  manifest: () => snapshot.loadManifest({ location }),
  saveManifest: (manifest) => snapshot.saveManifest({ location, manifest }),
  forget: () => manager.deleteSession(),
  listBrowsers: () => manager.listSnapshotIds({ target: { id: 'browser' } }),
  loadBrowser: (snapshotId) => snapshot.loadSnapshot({ location: browser, snapshotId }),
};

const results = [];
for (const [name, argument] of steps) {
  results.push((await operations[name](argument).catch((error) => ({ error: error.message }))) ?? null);
}
console.log(JSON.stringify({ results }));
