/** Entry `@statewright/agent/dialects`: run events in the formats of other frameworks. */

export { type BitopEvent, bitopDialect } from "./dialects/bitop.ts";
export type { AgentStop, PartialToolResult } from "./dialects/lifecycle.ts";
export { type PiEvent, piDialect } from "./dialects/pi.ts";
export { type YoagentEvent, yoagentDialect } from "./dialects/yoagent.ts";
