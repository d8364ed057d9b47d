// @kafkajs/confluent-schema-registry and @confluentinc/schemaregistry. Argument: the registry's address.
const assert = require('node:assert')
const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')
const {
  AvroDeserializer, AvroSerializer, JsonDeserializer, JsonSerializer, SchemaRegistryClient, SerdeType,
} = require('@confluentinc/schemaregistry')

const [url] = process.argv.slice(2)
const order = { type: 'record', name: 'Order', namespace: 'shop', fields: [{ name: 'id', type: 'long' }] }
const wider = { ...order, fields: [...order.fields, { name: 'note', type: 'string' }] }

async function kafkajs() {
  const registry = new SchemaRegistry({ host: url })
  const { id } = await registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(order) }, { subject: 'order-value' })
  assert.deepEqual(await registry.decode(await registry.encode(id, { id: 7 })), { id: 7 })
  assert.equal(await registry.getLatestSchemaId('order-value'), id)
  assert.equal(await registry.getRegistryIdBySchema('order-value', { type: SchemaType.AVRO, schema: JSON.stringify(order) }), id)
  await assert.rejects(
    registry.register({ type: SchemaType.AVRO, schema: JSON.stringify(wider) }, { subject: 'order-value' }), /incompatible/i)
  const json = await registry.register(
    { type: SchemaType.JSON, schema: '{"type":"object","properties":{"a":{"type":"string"}}}' }, { subject: 'json' })
  assert.deepEqual(await registry.decode(await registry.encode(json.id, { a: 'x' })), { a: 'x' })
  const proto = await registry.register(
    { type: SchemaType.PROTOBUF, schema: 'syntax = "proto3"; package shop; message Tea { string name = 1; }' }, { subject: 'proto' })
  assert.equal((await registry.decode(await registry.encode(proto.id, { name: 'green' }))).name, 'green')
}

async function confluent() {
  const client = new SchemaRegistryClient({ baseURLs: [url] })
  const id = await client.register('tea-value', { schema: JSON.stringify({ ...order, name: 'Tea' }) })
  assert.equal(await client.getId('tea-value', { schema: JSON.stringify({ ...order, name: 'Tea' }) }), id)
  const latest = { useLatestVersion: true }
  const bytes = await new AvroSerializer(client, SerdeType.VALUE, latest).serialize('tea', { id: 3 })
  assert.equal(Number((await new AvroDeserializer(client, SerdeType.VALUE, {}).deserialize('tea', bytes)).id), 3)
  await client.register('cup-value', { schemaType: 'JSON', schema: '{"type":"object","properties":{"a":{"type":"string"}}}' })
  const cup = await new JsonSerializer(client, SerdeType.VALUE, latest).serialize('cup', { a: 'x' })
  assert.deepEqual(await new JsonDeserializer(client, SerdeType.VALUE, {}).deserialize('cup', cup), { a: 'x' })
  assert.deepEqual(await client.getAllVersions('tea-value'), [1])
  assert.equal(await client.testSubjectCompatibility('tea-value', { schema: JSON.stringify({ ...wider, name: 'Tea' }) }), false)
  await client.updateCompatibility('tea-value', 'NONE')
  assert.equal(await client.getCompatibility('tea-value'), 'NONE')
  assert.deepEqual(await client.deleteSubject('tea-value'), [1])
}

kafkajs().then(confluent).then(() => process.exit(0), (error) => { console.error(error); process.exit(1) })
