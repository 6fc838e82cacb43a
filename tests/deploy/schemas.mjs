// Types, unknown fields and the schemas of extensions, of many sets of manifests in one process.
//
//   node schemas.mjs PACKAGES < request.json
//
// The request is {sets: {name: [objects]}, releases: {name: {files, lacks}}}; the answer is {name: [[release, sentence]]} on
// standard output, where the release of what Kubernetes itself has is empty. PACKAGES is the folder whose node_modules
// are used. A release's files are CustomResourceDefinitions, or gzip of them. `lacks` is {kind: names} of the fields and enum
// words in these files that the release does not have.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import {createRequire} from 'node:module';
import {pathToFileURL} from 'node:url';

const [packages] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(packages), 'package.json'));
const Ajv = require('ajv');
const yaml = require('js-yaml');
// Not the package's index: that needs a newer node.
const generated = path.join(path.resolve(packages), 'node_modules/@kubernetes/client-node/dist/gen/models/all.js');
const client = await import(pathToFileURL(generated));

// Kinds that have a schema nowhere here: the lint alone looks at them.
const WITHOUT_SCHEMA = new Set(['kubeflow.org/v1 TFJob', 'monitoring.coreos.com/v1 PrometheusRule']);
const PRIMITIVE = new Set(['string', 'number', 'boolean']);

function modelOf(object) {
  const [group, version] = object.apiVersion.includes('/') ? object.apiVersion.split('/') : ['', object.apiVersion];
  try {
    return require(['kubernetes-models', group, version].filter(Boolean).join('/'))[object.kind];
  } catch {
    return undefined;
  }
}

// Types, enumerations, what is required.
function wrongTypes(object) {
  const Model = modelOf(object);
  if (!Model) return null;
  try {
    new Model(object).validate();
    return [];
  } catch (error) {
    return [String(error.message)];
  }
}

// Fields that the API does not know, by the generated client's table of each type.
function* unknownFields(value, type, at) {
  if (value === null || value === undefined) return;
  const list = type.match(/^Array<(.*)>$/);
  const map = type.match(/^\{ \[key: string\]: (.*); \}$/);
  if (list) {
    if (!Array.isArray(value)) yield `${at} is not a list`;
    else for (const [i, item] of value.entries()) yield* unknownFields(item, list[1], `${at}[${i}]`);
  } else if (map) {
    for (const [key, item] of Object.entries(value)) yield* unknownFields(item, map[1], `${at}.${key}`);
  } else if (client[type]?.getAttributeTypeMap) {
    const known = new Map(client[type].getAttributeTypeMap().map((a) => [a.baseName, a.type]));
    if (typeof value !== 'object' || Array.isArray(value)) yield `${at} is not an object`;
    else for (const [key, item] of Object.entries(value)) {
      if (known.has(key)) yield* unknownFields(item, known.get(key), `${at}.${key}`);
      else yield `${at}.${key} is an unknown field`;
    }
  } else if (PRIMITIVE.has(type) && typeof value !== type) {
    yield `${at} is a ${typeof value}, not a ${type}`;
  }
}

function typeName(object) {
  const version = object.apiVersion.split('/').pop();
  return version[0].toUpperCase() + version.slice(1) + object.kind;
}

// A schema of a CustomResourceDefinition as JSON Schema, in which a field that it does not name is a mistake.
function strict(schema) {
  if (Array.isArray(schema)) return schema.map(strict);
  if (schema === null || typeof schema !== 'object') return schema;
  const made = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key.startsWith('x-kubernetes-') || ['description', 'default', 'format'].includes(key)) continue;
    made[key] = ['properties', 'patternProperties'].includes(key)
      ? Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, strict(inner)]))
      : strict(value);
  }
  if (schema['x-kubernetes-int-or-string']) {
    delete made.anyOf;
    delete made.pattern;
    made.type = ['integer', 'string'];
  }
  const closed = made.properties && made.additionalProperties === undefined;
  if (closed && !schema['x-kubernetes-preserve-unknown-fields']) made.additionalProperties = false;
  return made;
}

// Removes from a schema the names that a release lacks, and from `left` the names that were found.
function takeOut(schema, names, left) {
  if (schema === null || typeof schema !== 'object') return;
  for (const name of names) {
    if (schema.properties?.[name]) {
      delete schema.properties[name];
      left.delete(name);
    }
    if (schema.enum?.includes(name)) {
      schema.enum = schema.enum.filter((word) => word !== name);
      left.delete(name);
    }
  }
  for (const inner of Object.values(schema)) takeOut(inner, names, left);
}

const request = JSON.parse(fs.readFileSync(0, 'utf8'));
// {kind: {release: schema, or what it has become}}
const validators = new Map();
const ajv = new Ajv({allErrors: true, strict: false});

function addDefinition(crd, release, lacks) {
  const left = new Set(lacks);
  for (const version of crd.spec.versions) {
    const schema = strict(version.schema.openAPIV3Schema);
    schema.properties.metadata = {type: 'object'};
    takeOut(schema, lacks, left);
    const key = `${crd.spec.group}/${version.name} ${crd.spec.names.kind}`;
    if (!validators.has(key)) validators.set(key, new Map());
    validators.get(key).set(release, schema);
  }
  if (left.size) throw new Error(`${release}: nothing in ${crd.spec.names.kind} is called ${[...left]}`);
}

for (const [release, {files, lacks}] of Object.entries(request.releases)) {
  for (const file of files) {
    const bytes = fs.readFileSync(file);
    const text = file.endsWith('.gz') ? zlib.gunzipSync(bytes) : bytes;
    for (const crd of yaml.loadAll(text.toString('utf8'))) {
      if (crd?.kind === 'CustomResourceDefinition') addDefinition(crd, release, lacks[crd.spec.names.kind] ?? []);
    }
  }
}

function* wrongExtension(object, key) {
  const known = validators.get(key);
  for (const [release, validate] of known) {
    if (typeof validate !== 'function') known.set(release, ajv.compile(validate));
    if (known.get(release)(object)) continue;
    for (const e of known.get(release).errors) {
      yield [release, `${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`];
    }
  }
}

function wrongWith(object) {
  const key = `${object.apiVersion} ${object.kind}`;
  if (validators.has(key)) return [...wrongExtension(object, key)];
  if (WITHOUT_SCHEMA.has(key)) return [];
  const wrong = wrongTypes(object);
  if (wrong === null || !client[typeName(object)]) return [['', `no schema of ${key}`]];
  return [...wrong, ...unknownFields(object, typeName(object), '')].map((text) => ['', text]);
}

const answer = {};
for (const [name, objects] of Object.entries(request.sets)) {
  answer[name] = objects.flatMap(
    (o) => wrongWith(o).map(([release, text]) => [release, `${o.kind} ${o.metadata?.name}: ${text}`]));
}
process.stdout.write(JSON.stringify(answer));
