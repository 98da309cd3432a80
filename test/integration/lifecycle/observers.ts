import { Registry } from "prom-client";
import { dashboard, serveDashboard } from "../../../src/tools/dashboard/index.ts";
import { Doctor } from "../../../src/tools/dashboard/readings/doctor.ts";
import { EventStreams } from "../../../src/tools/dashboard/calls/event-streams.ts";
import { QueueView } from "../../../src/tools/view/samples/queue-view.ts";
import { Readings } from "../../../src/tools/dashboard/readings/readings.ts";
import { Sampler } from "../../../src/tools/view/samples/sampler.ts";
import { diagnose } from "../../../src/tools/doctor/diagnose.ts";
import { Inspector } from "../../../src/tools/view/inspector.ts";
import { instrument } from "../../../src/adapters/opentelemetry/index.ts";
import { collectMetrics } from "../../../src/adapters/prometheus/index.ts";
import { fromHere } from "../../helpers/dashboard.ts";
import { newLineThatMayFail } from "../../helpers/delayline.ts";
import { uniqueName } from "../../helpers/redis.ts";
import { CALL_TIMEOUT, CLOSE_TIMEOUT, type Kind } from "./running.ts";

const TIMEOUTS = { callTimeout: CALL_TIMEOUT, unreachableTimeout: CLOSE_TIMEOUT };

const EVENTS = "http://localhost/api/events";

function newInspector(url: string): Inspector {
  return new Inspector({ redis: url, ...TIMEOUTS, onError: () => {} });
}

async function readAll(body: AsyncIterable<unknown> | null): Promise<void> {
  for await (const _ of body ?? []);
}

/** The classes that read queues. */
export const observers: Readonly<Record<string, Kind>> = {
  "an inspector": {
    files: ["inspector.ts"],
    make: (url) => {
      const inspector = newInspector(url);
      return {
        start: () => [inspector.names(), inspector.open(uniqueName())],
        close: () => inspector.close(),
      };
    },
  },
  "a sampler and its event streams": {
    files: ["sampler.ts", "event-streams.ts"],
    make: (url) => {
      const inspector = newInspector(url);
      const sampler = new Sampler(inspector, undefined, { round: 5, search: 5 });
      const streams = new EventStreams(sampler, new QueueView(inspector));
      return {
        start: () => readAll(streams.open("orders", new Request(EVENTS)).body),
        close: async () => {
          streams.close();
          sampler.close();
          await inspector.close();
        },
      };
    },
  },
  "lists that are paged through": {
    files: ["readings.ts"],
    make: (url) => {
      const inspector = newInspector(url);
      const readings = new Readings();
      const messages = async function* (signal: AbortSignal) {
        const { messages: delayed } = await inspector.open("orders", signal);
        yield* delayed.find({ prefix: "" }, { signal });
      };
      return {
        start: () => readings.page("orders", { cursor: undefined, limit: 10 }, messages),
        close: async () => {
          readings.close();
          await inspector.close();
        },
      };
    },
  },
  "the dashboard's doctor": {
    files: ["doctor.ts"],
    make: (url) => {
      const doctor = new Doctor(url);
      return {
        start: () => doctor.examine(),
        close: async () => {
          doctor.close();
          // What is under way ends before its time bounds.
          await doctor.examine().catch(() => {});
        },
      };
    },
  },
  "a dashboard": {
    files: ["dashboard.ts"],
    make: (url) => {
      const board = dashboard({ redis: url, callTimeout: CALL_TIMEOUT });
      return {
        start: async () => {
          const { body } = await board(fromHere(new Request(EVENTS)));
          await readAll(body);
        },
        close: () => board.close(),
      };
    },
  },
  "a dashboard with a server of its own": {
    files: ["serve-dashboard.ts"],
    make: (url) => {
      const serving = serveDashboard({ redis: url, callTimeout: CALL_TIMEOUT, port: 0 });
      return {
        start: async () => {
          const { body } = await fetch(new URL("api/events", (await serving).url));
          await readAll(body);
        },
        close: async () => await (await serving).close(),
      };
    },
  },
  "metrics for Prometheus": {
    files: ["collect-metrics.ts", "scraper.ts"],
    make: (url) => {
      const line = newLineThatMayFail({ redis: url, ...TIMEOUTS });
      const registry = new Registry();
      const metrics = collectMetrics(line, { registry, queues: "all" });
      return { start: () => registry.metrics(), close: () => metrics.close() };
    },
  },
  "instrumentation for OpenTelemetry": {
    files: ["instrument.ts", "metrics.ts", "queue-gauges.ts", "spans.ts"],
    make: () => {
      const instrumented = instrument();
      return { start: () => {}, close: () => instrumented.close() };
    },
  },
  "a diagnosis": {
    files: ["site.ts", "close-look.ts"],
    make: (url) => {
      const stopping = new AbortController();
      const { signal } = stopping;
      let diagnosing: Promise<void> | undefined;
      return {
        start: () => (diagnosing = readAll(diagnose({ redis: url, queues: ["orders"], signal }))),
        close: async () => {
          stopping.abort();
          await diagnosing?.catch(() => {});
        },
      };
    },
  },
};
