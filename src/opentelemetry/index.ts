/**
 * `delayline/opentelemetry`: spans and metrics of all queues of this process.
 *
 * `@opentelemetry/api` has to be installed, and an SDK to be set up, or nothing is recorded.
 *
 * @module
 */
export { instrument, type Instrumented, type InstrumentOptions } from "./instrument.ts";
export type { ObservedQueue } from "./queue-gauges.ts";
