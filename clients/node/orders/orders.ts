/**
 * Turns orders into invoices, each exactly once: kafkajs, with transactions.
 *
 * It reads `orders` ("alice 3") and writes `invoices` ("alice 30"). The invoices and the offsets that it has read up to belong to
 * one transaction, so an invoice exists if and only if its order counts as read.
 */

import { type Admin, type Consumer, type EachBatchPayload, Kafka, type KafkaMessage, type Producer, logLevel } from "kafkajs";

export const PRICE = 10;
const AT_ONCE = 5;
const FENCED = [47, 90]; // INVALID_PRODUCER_EPOCH, PRODUCER_FENCED, which kafkajs has no name for

/** Another worker has this name now. */
export class Fenced extends Error {}

export class Orders {
  private readonly kafka: Kafka;
  private readonly consumer: Consumer;
  private readonly admin: Admin;
  private producer: Producer;
  private left = 0;
  private done: () => void = () => {};
  private failed: (error: Error) => void = () => {};
  private isDead = false;

  private constructor(brokers: string[], private readonly worker: string) {
    this.kafka = new Kafka({ brokers, clientId: worker, logLevel: logLevel.NOTHING, retry: { initialRetryTime: 20 } });
    this.consumer = this.kafka.consumer({ groupId: "orders", maxWaitTimeInMs: 200, readUncommitted: false });
    this.admin = this.kafka.admin();
    this.producer = this.newProducer();
  }

  private newProducer(): Producer {
    return this.kafka.producer({ transactionalId: this.worker, maxInFlightRequests: 1, idempotent: true, transactionTimeout: 60_000 });
  }

  /** Takes over from whoever worked under this name before: that one is fenced. */
  static async start(brokers: string[], worker: string): Promise<Orders> {
    const made = new Orders(brokers, worker);
    await made.admin.connect();
    await made.takeOver();
    await made.consumer.connect();
    await made.consumer.subscribe({ topic: "orders", fromBeginning: true });
    return made;
  }

  /** With a new producer, which ends what the one before has left open. */
  private async takeOver(): Promise<void> {
    await this.producer.connect();
    await (await this.producer.transaction()).abort();
  }

  /** Works until so many orders have been invoiced. Throws Fenced. */
  async work(wanted: number): Promise<void> {
    this.left = wanted;
    const worked = new Promise<void>((resolve, reject) => {
      this.done = resolve;
      this.failed = reject;
    });
    await this.consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: (batch) => this.batch(batch) });
    this.consumer.resume([{ topic: "orders" }]);
    await worked;
  }

  private async batch({ batch, resolveOffset, heartbeat, isRunning, isStale }: EachBatchPayload): Promise<void> {
    for (let at = 0; at < batch.messages.length && isRunning() && !isStale() && !this.isDead; ) {
      if (this.left <= 0) break;
      const orders = batch.messages.slice(at, at + Math.min(AT_ONCE, this.left));
      const last = Number(orders.at(-1)!.offset);
      try {
        await this.step(orders, batch.partition, last + 1);
      } catch (error) {
        if (isFenced(error)) return this.stopWith(new Fenced(String(error)));
        if (!(await this.hasCommitted(batch.partition, last + 1))) continue;
      }
      resolveOffset(String(last));
      await heartbeat();
      at += orders.length;
      this.left -= orders.length;
    }
    if (this.left <= 0) {
      this.consumer.pause([{ topic: "orders" }]);
      this.done();
    }
  }

  private stopWith(error: Error): void {
    this.isDead = true; // a batch of another partition may be there already
    this.consumer.pause([{ topic: "orders" }]);
    this.failed(error);
  }

  /** One transaction: invoices, and the offsets after their orders. */
  private async step(orders: KafkaMessage[], partition: number, next: number): Promise<void> {
    const transaction = await this.producer.transaction();
    const messages = orders.map(({ value }) => {
      const [customer, count] = value!.toString().split(" ");
      return { value: `${customer} ${Number(count) * PRICE}` };
    });
    await transaction.send({ topic: "invoices", messages });
    await transaction.sendOffsets({ consumerGroupId: "orders", topics: [{ topic: "orders", partitions: [{ partition, offset: String(next) }] }] });
    await transaction.commit();
  }

  /** After a step that failed: writes with a new producer, as the old one may be in any state, and asks what is so. */
  private async hasCommitted(partition: number, next: number): Promise<boolean> {
    await this.producer.disconnect().catch(() => {});
    this.producer = this.newProducer();
    await this.takeOver();
    const [found] = await this.admin.fetchOffsets({ groupId: "orders", topics: ["orders"] });
    return Number(found!.partitions.find((each) => each.partition === partition)?.offset ?? -1) >= next;
  }

  /** Ends it where it is: nothing is committed or aborted. */
  async die(): Promise<void> {
    this.isDead = true;
    this.done();
    await this.producer.disconnect();
  }

  async stop(): Promise<void> {
    this.isDead = true;
    await Promise.all([this.consumer.disconnect(), this.producer.disconnect(), this.admin.disconnect()]);
  }
}

function isFenced(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause)
    if (FENCED.includes((each as { code?: number }).code ?? 0)) return true;
  return false;
}
