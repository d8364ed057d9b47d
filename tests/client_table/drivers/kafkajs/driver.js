// The driver of kafkajs; lines.py says what it speaks.
//
// A member commits inside `eachMessage`, as its users do: the handler of a record goes on until the next command, and what
// a commit throws there is thrown on to kafkajs.

const readline = require("readline");
const { Kafka, logLevel } = require("kafkajs");
const { version } = require("kafkajs/package.json");

const TOPIC = "orders";
const REQUEST_MS = 10000;

let made, deliveries, crash, waiting, handler;

function wake() {
  const next = waiting;
  waiting = undefined;
  if (next) next();
}

const acts = {
  async producer(address) {
    made = client(address).producer();
    await made.connect();
  },
  async consumer(address, groupId) {
    made = client(address).consumer({ groupId });
    deliveries = [];
    crash = undefined;
    made.on(made.events.CRASH, ({ payload }) => {
      if (payload.restart) return; // it joins again by itself
      crash = payload.error; // it has stopped for good: what is asked of it from now on is refused with this
      wake();
    });
    await made.connect();
    await made.subscribe({ topics: [TOPIC], fromBeginning: true });
    await made.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        const record = { partition, offset: message.offset, value: message.value.toString() };
        const commits = await new Promise((goOn) => {
          deliveries.push({ ...record, goOn });
          wake();
        });
        if (!commits) return;
        const offset = (BigInt(message.offset) + 1n).toString();
        try {
          await made.commitOffsets([{ topic: TOPIC, partition, offset }]);
          commits.done();
        } catch (error) {
          commits.failed(error);
          throw error;
        }
      },
    });
  },
  async produce(value) {
    await made.send({ topic: TOPIC, messages: [{ value }] });
  },
  async consume() {
    if (handler) handler.goOn();
    handler = undefined;
    while (!deliveries.length && !crash) await new Promise((resolve) => (waiting = resolve));
    if (!deliveries.length) throw crash;
    handler = deliveries.shift();
    return [handler.offset, handler.value];
  },
  async commit() {
    if (crash) throw crash;
    const { goOn } = handler;
    handler = undefined;
    await new Promise((done, failed) => goOn({ done, failed }));
  },
  async close() {
    for (const each of [handler, ...(deliveries || [])]) if (each) each.goOn();
    handler = undefined;
    await made.disconnect();
  },
};

function client(address) {
  return new Kafka({
    clientId: "driver",
    brokers: [address],
    requestTimeout: REQUEST_MS,
    connectionTimeout: REQUEST_MS,
    logLevel: logLevel.NOTHING,
  });
}

function say(...words) {
  process.stdout.write(words.map((word) => String(word).split(/\s+/).join(" ")).join("\t") + "\n");
}

async function main() {
  say("client", "kafkajs", version);
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [act, ...words] = line.split("\t");
    try {
      say("ok", ...((await acts[act](...words)) || []));
    } catch (error) {
      say("error", error.type || error.name, error.message);
    }
  }
  process.exit(0);
}

main();
