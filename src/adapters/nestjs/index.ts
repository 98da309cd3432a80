/**
 * `delayline/nestjs`: queues in a Nest application.
 *
 * @module delayline/nestjs
 */
export {
  DelaylineHealthIndicator,
  getDelaylineHealthToken,
  InjectDelaylineHealth,
} from "./delayline-health-indicator.ts";
export type { DelaylineHealth, HealthCheckOptions } from "./delayline-health-indicator.ts";
export {
  DelaylineModule,
  type DelaylineModuleAsyncOptions,
  type DelaylineModuleOptions,
} from "./delayline-module.ts";
export {
  getDelaylineToken,
  getQueueToken,
  InjectDelayline,
  InjectQueue,
  type QueueChoice,
  type QueueKind,
  type QueueRegistration,
} from "./queue-registration.ts";
