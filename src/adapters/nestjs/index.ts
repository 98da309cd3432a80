/**
 * `delayline/nestjs`: queues in a Nest application.
 *
 * @module
 */
export { DelaylineHealthIndicator } from "./delayline-health-indicator.ts";
export type { DelaylineHealth, HealthCheckOptions } from "./delayline-health-indicator.ts";
export { DelaylineModule } from "./delayline-module.ts";
export type {
  DelaylineModuleAsyncOptions,
  DelaylineModuleOptions,
} from "./delayline-module-options.ts";
export { getQueueToken, InjectDelayline, InjectQueue } from "./inject.ts";
export type { QueueKind, QueueRegistration } from "./queue-registration.ts";
