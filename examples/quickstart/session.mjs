// The session that `stasis session exec` gives in STASIS_CDP_URL, else the one that the last
// create wrote to session.json. If the create failed, that file has the error instead.
import { readFileSync } from 'node:fs';

const given = process.env.STASIS_CDP_URL;

export const session = given ? { cdp_url: given } : JSON.parse(readFileSync('session.json', 'utf8'));
if (!session.cdp_url) {
  console.error('session.json has no cdp_url. The create failed, or its session has ended:', session);
  process.exit(1);
}
