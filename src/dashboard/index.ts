/**
 * `delayline/dashboard`: a page that shows the queues, to be mounted in an HTTP server.
 *
 * @module
 */
export { dashboard, type Dashboard } from "./dashboard.ts";
export { nodeHandler } from "./http/node-handler.ts";
export type { DashboardOptions, ServeOptions } from "./http/options.ts";
export { serveDashboard, type ServedDashboard } from "./serve-dashboard.ts";
