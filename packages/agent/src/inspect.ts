/** Entry `@statewright/agent/inspect`: traces runs of agents, and sums the tokens of their messages. */

export { sumUsage } from "./sub-agents/sum-usage.ts";
export {
  genAiConventions,
  type SpanAttributes,
  type SpanStart,
  type Traceable,
  type TracedSpan,
  type Tracer,
  traceRun,
} from "./trace/trace-run.ts";
