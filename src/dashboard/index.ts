/**
 * `delayline/dashboard`: a page that shows the queues, to be mounted in an HTTP server.
 *
 * @module
 */
export { dashboard, type Dashboard } from "./dashboard.ts";
export { nodeHandler } from "./node-handler.ts";
export type { DashboardOptions, ServeOptions } from "./options.ts";
export { serveDashboard, type ServedDashboard } from "./serve-dashboard.ts";
