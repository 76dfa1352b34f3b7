// The SnapshotStorage of the Strands agents SDK, kept in Stasis. Copy it into your project.
import type { Snapshot, SnapshotLocation, SnapshotManifest, SnapshotStorage } from '@strands-agents/sdk';

type Asked<Method extends keyof SnapshotStorage> = Parameters<SnapshotStorage[Method]>[0];
type Page = { snapshot_ids: string[]; next_token: string | null };

export class StasisStorage implements SnapshotStorage {
  readonly #url: string;
  readonly #key: string;

  constructor(options: { url: string; apiKey: string }) {
    this.#url = options.url;
    this.#key = options.apiKey;
  }

  async saveSnapshot({ location, snapshotId, isLatest, snapshot }: Asked<'saveSnapshot'>): Promise<void> {
    await this.#call('PUT', `${path(location)}/snapshots/${isLatest ? 'latest' : part(snapshotId)}`, snapshot);
  }
  loadSnapshot({ location, snapshotId = 'latest' }: Asked<'loadSnapshot'>): Promise<Snapshot | null> {
    return this.#call('GET', `${path(location)}/snapshots/${part(snapshotId)}`);
  }
  async listSnapshotIds({ location, limit = Infinity, startAfter = '' }: Asked<'listSnapshotIds'>): Promise<string[]> {
    const ids: string[] = [];
    for (let after: string | null = startAfter; after !== null && ids.length < limit; ) {
      const query = `limit=${Math.min(limit - ids.length, 1000)}${after && `&start_after=${part(after)}`}`;
      const page: Page = (await this.#call('GET', `${path(location)}/snapshots?${query}`))!;
      ids.push(...page.snapshot_ids);
      after = page.next_token;
    }
    return ids;
  }
  async deleteSession({ sessionId }: Asked<'deleteSession'>): Promise<void> {
    await this.#call('DELETE', `${part(sessionId)}/scopes`);
  }
  async loadManifest({ location }: Asked<'loadManifest'>): Promise<SnapshotManifest> {
    return (await this.#call<SnapshotManifest>('GET', `${path(location)}/manifest`))!;
  }
  async saveManifest({ location, manifest }: Asked<'saveManifest'>): Promise<void> {
    await this.#call('PUT', `${path(location)}/manifest`, manifest);
  }

  async #call<Answer>(method: string, at: string, body?: unknown): Promise<Answer | null> {
    const headers = { Authorization: `Bearer ${this.#key}`, 'Content-Type': 'application/json' };
    const answer = await fetch(`${this.#url}/v1/sessions/${at}`, { method, headers, body: body ? JSON.stringify(body) : null });
    const text = await answer.text();
    const said = text ? JSON.parse(text) : null;
    if (answer.ok) return said;
    if (said.code === 'snapshot_not_found') return null;
    throw new Error(`Stasis: ${said.code}: ${said.message}`);
  }
}

const part = encodeURIComponent;
const path = ({ sessionId, scope, scopeId }: SnapshotLocation) => `${part(sessionId)}/scopes/${scope}/${part(scopeId)}`;
