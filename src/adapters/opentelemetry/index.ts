/**
 * `delayline/opentelemetry`: spans and metrics of all queues of this process.
 *
 * Needs `@opentelemetry/api`. Nothing is recorded unless an SDK is set up.
 *
 * @module delayline/opentelemetry
 */
export { instrument, type Instrumented, type InstrumentOptions } from "./instrument.ts";
export type { ObservedQueue } from "./queue-gauges.ts";
