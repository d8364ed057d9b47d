// Testcontainers' KafkaContainer for Node, in each of its modes, with the image that the first word names.
const { KafkaContainer } = require("@testcontainers/kafka");
const { Network } = require("testcontainers");
const { Kafka, logLevel } = require("kafkajs");
const fs = require("fs");

const [image, keyStore, passphrase] = process.argv.slice(2);

async function roundTrip(name, settings) {
  const kafka = new Kafka({ logLevel: logLevel.ERROR, ...settings });
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: "t", messages: [{ value: "one" }] });
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: "g" });
  await consumer.connect();
  await consumer.subscribe({ topic: "t", fromBeginning: true });
  const value = await new Promise((found) =>
    consumer.run({ eachMessage: async ({ message }) => found(message.value.toString()) }),
  );
  await consumer.disconnect();
  console.log(`${name}: ${value}`);
}

async function plain(name, container) {
  const kafka = await container.start();
  await roundTrip(name, { brokers: [`${kafka.getHost()}:${kafka.getMappedPort(9093)}`] });
  await kafka.stop();
}

async function secure(name, container, mechanism) {
  const kafka = await container
    .withSaslSslListener({
      port: 9096,
      sasl: { mechanism, user: { name: "app-user", password: "userPassword" } },
      keystore: { content: fs.readFileSync(keyStore), passphrase },
    })
    .start();
  await roundTrip(name, {
    brokers: [`${kafka.getHost()}:${kafka.getMappedPort(9096)}`],
    sasl: { username: "app-user", password: "userPassword", mechanism },
    ssl: { rejectUnauthorized: false },
  });
  await kafka.stop();
}

(async () => {
  await plain("KafkaContainer with ZooKeeper", new KafkaContainer(image));
  await plain("KafkaContainer with KRaft", new KafkaContainer(image).withKraft());
  await secure("SASL_SSL with ZooKeeper", new KafkaContainer(image), "SCRAM-SHA-256");
  await secure("SASL_SSL with KRaft", new KafkaContainer(image).withKraft(), "SCRAM-SHA-512");
  process.exit(0);
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
