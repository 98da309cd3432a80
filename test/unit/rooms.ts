// The rooms of src/, each with its rule, and who may import whom. A room is a folder, or a file on the ground floor.

/** From the top down. A room imports itself and what is below its floor, and no neighbour. */
export const FLOORS: readonly Readonly<Record<string, string>>[] = [
  {
    "index.ts": "The public names.",
    "events.ts": "The public names of events: types alone.",
    "inside.ts": "The door through which the tools reach the core, beside the public names.",
  },
  { client: "What one process has open: the client, and its queues by name." },
  { handles: "The users' classes: check, encode, decode; nothing else." },
  {
    partitions:
      "A queue as the list of its parts: one, or one for each partition. Its classes offer what those of one part offer.",
  },
  { "partitions/change": "Changing the number of partitions." },
  {
    "partitions/exclusive": "Consuming a partition under a lease.",
    "partitions/taking": "Taking from all partitions.",
  },
  {
    "partitions/routing":
      "Finds the partition of a message, and brings the message over while the number of partitions changes.",
  },
  { "partitions/parts": "The partitions that this client has open, and what it knows about them." },
  { "partitions/ring": "Names, buckets, shares and the fact, computed without Redis." },
  {
    reliable:
      "A queue whose messages are acknowledged: retries, what it contains, the watch over the LIST.",
  },
  {
    "reliable/consuming":
      "Deliveries in the hands of the user's code: handlers, sequences and routes, the retry ladder.",
  },
  { "reliable/group": "One consumer in one group: reading, settling, leases, reclaiming." },
  {
    delayed: "Messages until they are due: look-up, cancelling, the insertion order.",
    ready: "Due messages in a LIST: taking, giving back.",
    schedules: "Messages that recur: ticks, what Redis holds of a schedule, and the planner.",
  },
  {
    "delayed/transfer": "The task that moves due messages and tidies up.",
    "delayed/offering": "Offers, and the batch in which those of one turn travel to Redis.",
  },
  { "queue/consuming": "What consumers of both kinds of queue share: handlers, subscriptions." },
  { queue: "What every queue is: keys, options, checks, payloads, pause." },
  { "queue/message": "The bytes of a message: id, bucket, trailer, headers, failed attempts." },
  {
    observe:
      "What is counted and published: numbers, counters, histograms, diagnostics channels. It asks Redis nothing.",
  },
  {
    "lua/exchanges":
      "Moves that take a message out of one place, and offer others in the same step.",
  },
  {
    "lua/delayed": "Moves of delayed messages, and transfers.",
    "lua/ready": "Moves of messages in the ready LIST, and of the quarantine.",
    "lua/reliable": "Moves of messages in the stream, retries and dead letters.",
    "lua/schedules": "Records of schedules, and the messages that are placed with them.",
    "lua/queue": "Pausing, counting, the time, and what concerns all places.",
    "lua/partitions": "The fact, the members, batches and leases of partitions.",
  },
  {
    "lua/places":
      "What the scripts do in a place of messages: put, find, drop, count. A file for each place.",
  },
  {
    "lua/fragments":
      "Lua functions about bytes that scripts share: an address, a trailer, a member.",
  },
  {
    lua: "How scripts and fragments are declared and run. The only Lua is in its rooms: one atomic move per file.",
  },
  { run: "What runs in the background and knows no queue: tasks, blocking loops, those who wait." },
  { redis: "Connections, and how they survive." },
  { "errors.ts": "The errors that all rooms throw." },
  { "cause.ts": "Why Redis refuses or cannot be used, and the way out." },
  { "failure.ts": "The one place that knows what ioredis's errors mean." },
];

/** Pure code: every room may import it, and it imports nothing of the others. */
export const FOUNDATIONS: Readonly<Record<string, string>> = {
  nouns:
    "The places of a message and the numbers of a queue: what each is called, wherever it is shown.",
  time: "Clocks and timers; no Redis.",
  codecs: "Bytes and values.",
  words: "What an unknown name may mean.",
  values: "What was thrown: any value, read without throwing.",
};

export interface Annex {
  readonly rule: string;
  readonly imports: readonly string[];
}

/**
 * What stands on top of the queues, optional, which no other room imports, and what each room of it may import. A room of
 * the house stands for all rooms in it: `queue` for `queue/message`, too.
 */
export const ANNEXES: Readonly<Record<string, Annex>> = {
  "adapters/redisson": {
    rule: "`delayline/redisson`: Java's codecs.",
    imports: ["codecs", "words"],
  },
  "adapters/testing": {
    rule: "`delayline/testing`: a Redis for tests, and a clock that they turn.",
    imports: ["time", "adapters/testing/clock"],
  },
  "adapters/testing/clock": {
    rule: "A clock that tests turn: virtual time for timers and scripts.",
    imports: ["lua", "observe", "time"],
  },
  tools: { rule: "The package's version.", imports: [] },
  "tools/view": {
    rule: "What there is to see of queues and messages, once for the page, the command and the doctor.",
    imports: ["index.ts", "inside.ts"],
  },
  "tools/view/samples": {
    rule: "Samples the numbers of queues and keeps their history.",
    imports: ["tools/view", "index.ts", "inside.ts"],
  },
  "tools/doctor": {
    rule: "Runs an examination and collects its findings.",
    imports: ["tools/doctor/checks", "tools/doctor/looks", "tools/view", "index.ts", "inside.ts"],
  },
  "tools/doctor/checks": {
    rule: "Judges what was seen; asks nothing.",
    imports: ["tools/doctor/looks", "tools/view", "index.ts", "inside.ts"],
  },
  "tools/doctor/looks": {
    rule: "Asks Redis, and changes nothing there.",
    imports: ["tools/view", "index.ts", "inside.ts"],
  },
  "tools/dashboard": {
    rule: "A handler of HTTP requests, with its routes.",
    imports: [
      "tools/view/samples",
      "tools/dashboard/calls",
      "tools/dashboard/readings",
      "tools/dashboard/http",
      "tools/view",
      "tools",
      "index.ts",
      "inside.ts",
    ],
  },
  "tools/dashboard/calls": {
    rule: "Answers one request each: reads queues and acts on them.",
    imports: [
      "tools/view/samples",
      "tools/dashboard/readings",
      "tools/dashboard/http",
      "tools/view",
      "index.ts",
      "inside.ts",
    ],
  },
  "tools/dashboard/readings": {
    rule: "What takes longer than a call: lists in pages, an examination, the health of Redis.",
    imports: [
      "tools/dashboard/http",
      "tools/doctor",
      "tools/doctor/looks",
      "tools/view",
      "index.ts",
      "inside.ts",
    ],
  },
  "tools/dashboard/http": {
    rule: "Requests, replies and who may send them.",
    imports: ["index.ts", "inside.ts"],
  },
  "tools/cli": {
    rule: "The `delayline` command: picks a subcommand and runs it.",
    imports: [
      "tools/cli/commands",
      "tools/cli/session",
      "tools/view",
      "tools",
      "index.ts",
      "inside.ts",
    ],
  },
  "tools/cli/commands": {
    rule: "The subcommands: one per file, small neighbours together.",
    imports: [
      "tools/cli/demo",
      "tools/cli/top",
      "adapters/testing",
      "tools/cli/session",
      "tools/dashboard",
      "tools/doctor",
      "tools/view",
      "index.ts",
      "inside.ts",
    ],
  },
  "tools/cli/demo": {
    rule: "`delayline demo`: a Redis, orders, and workers to kill.",
    imports: [
      "tools/view",
      "tools/cli/session",
      "tools/dashboard",
      "adapters/testing",
      "index.ts",
      "inside.ts",
    ],
  },
  "tools/cli/top": {
    rule: "`delayline top`: the numbers of all queues on the whole terminal.",
    imports: ["tools/view/samples", "tools/cli/session", "tools/view", "index.ts", "inside.ts"],
  },
  "tools/cli/session": {
    rule: "What subcommands share: the session with Redis, how words are read, how results are printed.",
    imports: ["tools/view", "index.ts", "inside.ts"],
  },
  "tools/dashboard/page": {
    rule: "The page in the browser: it reaches the server by HTTP alone.",
    imports: [
      "tools/dashboard/page/pages",
      "tools/dashboard/page/parts",
      "tools/dashboard/page/data",
      "tools/dashboard/vendor",
    ],
  },
  "tools/dashboard/page/pages": {
    rule: "One view per file: all queues, one queue, one message.",
    imports: [
      "tools/dashboard/page/sections",
      "tools/dashboard/page/parts",
      "tools/dashboard/page/data",
      "tools/dashboard/vendor",
    ],
  },
  "tools/dashboard/page/sections": {
    rule: "What views are made of: tables, charts and forms about queues.",
    imports: ["tools/dashboard/page/parts", "tools/dashboard/page/data", "tools/dashboard/vendor"],
  },
  "tools/dashboard/page/parts": {
    rule: "Elements that any view may use: table, plot, dialog.",
    imports: ["tools/dashboard/page/data", "tools/dashboard/vendor"],
  },
  "tools/dashboard/page/data": {
    rule: "What the page knows: calls to the server, live numbers, the address bar.",
    imports: ["tools/dashboard/vendor"],
  },
  "tools/dashboard/page/styles": { rule: "Style sheets.", imports: [] },
  "tools/dashboard/vendor": {
    rule: "Libraries of the page, copied in, with their licenses.",
    imports: [],
  },
  "adapters/opentelemetry": {
    rule: "Spans and metrics of OpenTelemetry.",
    imports: ["nouns", "time", "values", "observe"],
  },
  "adapters/prometheus": {
    rule: "Metrics of Prometheus.",
    imports: ["nouns", "time", "client", "queue", "observe"],
  },
  "adapters/nestjs": {
    rule: "A module for NestJS.",
    imports: ["nouns", "time", "values", "client", "handles", "queue", "observe"],
  },
};
