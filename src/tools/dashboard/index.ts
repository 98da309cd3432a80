/**
 * `delayline/dashboard`: a web page that shows queues, to mount in an HTTP server.
 *
 * @module delayline/dashboard
 */
export { dashboard, type Dashboard } from "./dashboard.ts";
export type { DashboardOptions, ServeOptions } from "./dashboard-options.ts";
export { nodeHandler } from "./http/node-handler.ts";
export { serveDashboard, type ServedDashboard } from "./serve-dashboard.ts";
