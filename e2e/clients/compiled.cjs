// Keeps what V8 compiles of large modules in the folder COMPILED. Playwright's take half a
// second to compile in each process, and tests start a hundred of them. Node.js 22 has this
// built in (NODE_COMPILE_CACHE).
const { createHash } = require('node:crypto');
const { readFileSync, renameSync, writeFileSync } = require('node:fs');
const { Module } = require('node:module');
const { dirname, join } = require('node:path');
const { Script, constants } = require('node:vm');

const large = 20000; // characters
const compile = Module.prototype._compile;

Module.prototype._compile = function (content, filename, ...more) {
  const importsInEval = content.includes('eval(`import('); // which a cached script cannot do
  if (content.length < large || content.startsWith('#!') || importsInEval) return compile.call(this, content, filename, ...more);
  const file = join(process.env.COMPILED, createHash('sha256').update(`${filename}\n${content.length}`).digest('hex'));
  let cachedData;
  try { cachedData = readFileSync(file); } catch { /* this process is the first */ }
  const script = new Script(Module.wrap(content), { filename, cachedData, importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER });
  if (!cachedData || script.cachedDataRejected) {
    process.on('exit', () => { // functions that ran are compiled by then
      try {
        writeFileSync(`${file}.${process.pid}`, script.createCachedData());
        renameSync(`${file}.${process.pid}`, file);
      } catch { /* the tests are over, or the disk is full */ }
    });
  }
  return script.runInThisContext().call(this.exports, this.exports, Module.createRequire(filename), this, filename, dirname(filename));
};
