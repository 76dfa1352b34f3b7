import type { BrowserContextOptions, Page, PlaywrightTestConfig } from '@playwright/test';

/** How a session starts, how tests share it, and how it ends. */
export interface SessionOptions {
  /** The daemon's address. Default: `STASIS_URL`, else `http://127.0.0.1:8080`. */
  url?: string;
  /** An API key. Default: `STASIS_API_KEY`. */
  key?: string;
  /** The user whose default environment the session restores. Without `user` and `snapshot`, the session is empty. */
  user?: string;
  /** The snapshot that the session restores, in place of the user's default. */
  snapshot?: string;
  /** `true`: the session of `user` starts empty. */
  fresh?: boolean;
  /** The engine. Default: as for any create. */
  engine?: 'chrome' | 'shell';
  /**
   * `worker` (default): each worker has its own session. `test`: each context has its own, so no test
   * sees what another one changed. `run`: all workers share one.
   */
  per?: 'worker' | 'test' | 'run';
  /**
   * What the contexts of tests are. `environment` (default with `user` or `snapshot`): the restored
   * environment, shared by all tests of the session. `isolated`: a new context for each test, with the
   * user's cookies and localStorage. `new` (default of an empty session): an empty context for each test.
   * A test that sets `storageState` gets a new context with that state, whatever this says.
   */
  contexts?: 'environment' | 'isolated' | 'new';
  /** `environment` (default): the `request` fixture has the cookies that were saved. `anonymous`: it has none. */
  requests?: 'environment' | 'anonymous';
  /** How the session is saved when its worker ends. Default: it is not. `true` is `filesystem`. */
  save?: boolean | 'none' | 'filesystem' | 'memory';
  /**
   * `true`: the session is saved, and becomes the user's default, unless a test failed in it. If several
   * workers save a default, the one that ends last wins.
   */
  saveAsDefault?: boolean;
  /** More fields of the create, such as `{ viewport, proxy, labels }`; see openapi.yaml. */
  create?: Record<string, unknown>;
  /** The global setup writes the user's cookies and localStorage to this file, for tests that name it as `storageState`. */
  stateFile?: string;
  /**
   * Logs in. The global setup calls it if the user has no default, if its login has expired, or if the
   * user's login check fails, and saves. The page has the `baseURL` and other options of the project's `use`.
   */
  login?: (page: Page) => Promise<void>;
  /** What proves that the user is logged in. The global setup makes it the user's `login_check`, and checks. */
  loginCheck?: LoginCheck;
}

/** The page that a login check opens, and one or more conditions, all of which must hold. */
export interface LoginCheck {
  /** The page to open. It may be relative to `baseURL`. */
  url: string;
  /** The HTTP status of the answer. */
  status?: number;
  /** A CSS selector that matches something. */
  selector?: string;
  /** A CSS selector that matches nothing. */
  absent_selector?: string;
  /** A part of the visible text. */
  text?: string;
  /** The name of a cookie that would be sent. */
  cookie?: string;
  /** How long to wait, 1 to 60. Default: 15. */
  timeout_seconds?: number;
  /** Checks before each save that would change the default. Default: `true`. */
  before_default?: boolean;
  /** Checks at this interval, and saves what the site renews. */
  check_every_seconds?: number;
}

/** The answer to a create. */
export interface Session {
  session_id: string;
  cdp_url: string;
  agent_url: string;
  [field: string]: any;
}

/** Returns the config with sessions of Stasis in place of launched browsers. */
export function stasis<C extends PlaywrightTestConfig>(config: C, options?: SessionOptions): C;

/** The `use` of a project, or of `test.use()`, with other sessions than the config's. */
export function session(options: SessionOptions): { connectOptions: { wsEndpoint: string } };

/** The cookies and localStorage of a user's default or of a snapshot, for `use.storageState`. */
export function storageState(options: SessionOptions): Promise<Exclude<BrowserContextOptions['storageState'], string | undefined>>;
