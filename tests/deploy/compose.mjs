// The specification's own schema on compose files.
//
//   node compose.mjs PACKAGES < files.json
//
// files.json is {name: content}; the answer is {name: [sentences]} on standard output.
import fs from 'node:fs';
import path from 'node:path';
import {createRequire} from 'node:module';

const [packages] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(packages), 'package.json'));
const Ajv = require('ajv');
const schema = path.join(path.resolve(packages), 'node_modules/dclint/schemas/compose.schema.json');
const ajv = new Ajv({allErrors: true, strict: false, validateFormats: false});
// Its address of the draft is not one that ajv knows.
const {$schema, ...rest} = JSON.parse(fs.readFileSync(schema, 'utf8'));
const validate = ajv.compile(rest);

const answer = {};
for (const [name, content] of Object.entries(JSON.parse(fs.readFileSync(0, 'utf8')))) {
  answer[name] = validate(content) ? [] : validate.errors.map((e) => `${e.instancePath} ${e.message}`);
}
process.stdout.write(JSON.stringify(answer));
