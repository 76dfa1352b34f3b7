// Drives a browser with Puppeteer; see steps.mjs for what goes in and out.
import { connect } from './puppeteer-client.mjs';
import { main } from './steps.mjs';

await main(connect);
