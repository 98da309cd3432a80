/**
 * `delayline/nestjs`: queues in a Nest application.
 *
 * @module
 */
export { DelaylineHealthIndicator } from "./delayline-health-indicator.ts";
export type { DelaylineHealth, HealthCheckOptions } from "./delayline-health-indicator.ts";
export {
  DelaylineModule,
  type DelaylineModuleAsyncOptions,
  type DelaylineModuleOptions,
} from "./delayline-module.ts";
export {
  getQueueToken,
  InjectDelayline,
  InjectQueue,
  type QueueKind,
  type QueueRegistration,
} from "./queue-registration.ts";
