// Drives a browser with Puppeteer; see steps.mjs for the input and output.
import { connect } from './puppeteer-client.mjs';
import { main } from './steps.mjs';

await main(connect);
